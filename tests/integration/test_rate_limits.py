"""check-dns at real name servers that limit the rate of their answers."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from dkimctl.addresses import Address
from dkimctl.dns.check import Checker
from dkimctl.dns.queries import given
from dkimctl.dns.verdicts import Verdict
from dns_servers import serving
from published import APEX, txt

MISSING, PUBLISHED = 2800, 200
LIMITS = {
    "nsd, default": ("nsd", ""),
    "nsd, all lost": ("nsd", "rrl-slip: 0"),
    "nsd, one query a connection": ("nsd", "tcp-query-count: 1"),
    "named": ("named", "rate-limit { responses-per-second 5; slip 2; };"),
    "named, all lost": ("named", "rate-limit { responses-per-second 5; slip 0; };"),
}


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
def test_missing_names_are_checked_quickly(needs_tool, tmp_path, make_registration, limit):
    program, options = LIMITS[limit]
    registrations = [
        make_registration(f"d{number}.example.com") for number in range(MISSING + PUBLISHED)
    ]
    records = [registration.record for registration in registrations[:PUBLISHED]]
    zone = tmp_path / "zone"
    zone.write_text(APEX + "".join(txt(record.fqdn, record.value) for record in records))
    with serving(program, zone, tmp_path, needs_tool, options=options) as server:
        source = given([Address(server.host, server.port)], 64)
        start = time.monotonic()
        verdicts = [check.finding.verdict for check in Checker(source).check(registrations)]
        seconds = time.monotonic() - start
    assert set(verdicts[:PUBLISHED]) == {Verdict.PUBLISHED}
    assert Counter(verdicts[PUBLISHED:]) == {Verdict.MISSING: MISSING}
    assert seconds < 30  # without pipelining, a minute to four
