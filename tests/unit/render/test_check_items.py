"""Checks of DNS as JSON, JSON Lines and CSV."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dkimctl.dns.verdicts import Finding, ServerFinding, Verdict
from dkimctl.formats.renderer import CheckFormat
from rendering import HOSTILE, HOSTILE_CHECK, check_of, render_checks


@pytest.mark.parametrize("fmt", [CheckFormat.JSON, CheckFormat.JSONL])
def test_json_is_printable_ascii(fmt):
    text = render_checks(fmt, [HOSTILE_CHECK])
    assert all(line.isascii() and line.isprintable() for line in text.split("\n"))
    document = json.loads(text)
    (item,) = document.get("items", [document])
    for key in ("sign_domain", "selector", "fqdn", "reason", "alias", "start_date"):
        assert item[key] == HOSTILE
    assert item["servers"] == [{"server": HOSTILE, "verdict": "mismatch", "reason": HOSTILE}]


def test_csv_is_read_back(every_verdict):
    finding = ServerFinding("ns.test", Finding(Verdict.PUBLISHED))
    check = check_of(Verdict.MALFORMED, 'a "b", c; d', servers=(finding, finding), enable=False)
    text = render_checks(CheckFormat.CSV, [*every_verdict, check])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["verdict"] for row in rows[:-1]] == [
        check.finding.verdict for check in every_verdict
    ]
    assert rows[-1] == {
        "sign_domain": "example.com",
        "selector": "s1",
        "fqdn": "s1._domainkey.example.com",
        "verdict": "malformed",
        "reason": 'a "b", c; d',
        "alias": "",
        "urgency": "",
        "start_date": "2026-03-01T00:00+09:00",
        "enable": "false",
        "servers": "2",
    }
