"""Checks of DNS as JSON, JSON Lines and CSV."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dkimctl.dns.verdicts import Finding, ServerFinding, Urgency, Verdict
from dkimctl.render.renderer import CheckFormat
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


def test_json_has_every_field_of_a_check(every_verdict):
    servers = (
        ServerFinding("ns1.test (192.0.2.1)", Finding(Verdict.PUBLISHED)),
        ServerFinding("ns2.test (2001:db8::1)", Finding(Verdict.NO_ANSWER, "it does not answer")),
    )
    check = check_of(
        Verdict.NO_ANSWER, "published elsewhere", servers=servers, alias="k.example.net",
        urgency=Urgency.SOON, enable=None, start_date=None,
    )  # fmt: skip
    document = json.loads(render_checks(CheckFormat.JSON, [*every_verdict, check]))
    assert document["count"] == len(document["items"]) == len(every_verdict) + 1
    assert document["items"][-1] == {
        "sign_domain": "example.com",
        "selector": "s1",
        "fqdn": "s1._domainkey.example.com",
        "verdict": "no answer",
        "reason": "published elsewhere",
        "alias": "k.example.net",
        "urgency": "soon",
        "start_date": None,
        "enable": None,
        "servers": [
            {"server": "ns1.test (192.0.2.1)", "verdict": "published", "reason": ""},
            {
                "server": "ns2.test (2001:db8::1)",
                "verdict": "no answer",
                "reason": "it does not answer",
            },
        ],
    }


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
