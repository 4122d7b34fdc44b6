"""Warnings about specs that are valid, but seldom intended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dkimctl.models import DomainSpec
from dkimctl.registration.preflight import warnings
from dkimctl.specs.spec_file import read_specs
from spec_files import load_specs

NOW = datetime(2026, 11, 21, tzinfo=UTC)


ROOT = Path(__file__).parents[3]


def load(text: str, **options) -> list[DomainSpec]:
    return load_specs(text.encode(), "f.yaml", **options)


@pytest.mark.interface("2.3", "key_len-default", "start_date-default")
def test_short_keys_and_signing_at_once_give_one_warning_each():
    specs = load(
        "- a.example\n- {sign_domain: b.example, key_len: 1024, enable: false}\n"
        "- {sign_domain: c.example, start_date: 2027-07-01T00:00Z}\n- d.example\n"
        "- {sign_domain: e.example, key_len: 2048, enable: true}\n"
        "- {sign_domain: f.example, key_len: 2048, start_date: 2026-11-20T00:00Z}\n"
    )
    short, at_once = warnings(specs, NOW)
    assert short == (
        "1024-bit keys for 4 domains (a.example, b.example, c.example, …): "
        "write key_len: 2048 (RFC 8301)"
    )
    assert "4 domains (a.example, d.example, e.example, …)" in at_once


def test_start_too_soon_for_dns_gives_a_warning():
    starts = [NOW + timedelta(minutes=minutes) for minutes in (-1, 59, 61)]
    specs = [
        DomainSpec(f"d{number}.example", key_len=2048, start_date=start.isoformat())
        for number, start in enumerate(starts)
    ]
    at_once, soon = warnings(specs, NOW)
    assert "1 domain (d0.example)" in at_once
    assert "within the hour for 1 domain (d1.example)" in soon
    assert "check-dns" in soon


def test_example_file_shows_the_forms_and_gives_no_warning():
    specs = read_specs(str(ROOT / "domains.example.yaml"))
    assert [spec.sign_domain for spec in specs] == [
        "example.com",
        "mail.example.com",
        "news.example.com",
    ]
    assert warnings(specs, NOW) == []
