"""A check of DNS as an item of JSON, and as a row of CSV."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dkimctl.dns.verdicts import Check
from dkimctl.render.json_format import json_line


class _Finding(msgspec.Struct, gc=False):
    server: str
    verdict: str
    reason: str


class _Item(msgspec.Struct, gc=False):
    sign_domain: str
    selector: str
    fqdn: str
    verdict: str
    reason: str
    alias: str
    urgency: str
    start_date: str | None
    enable: bool | None
    servers: Sequence[_Finding]


CHECK_COLUMNS = _Item.__struct_fields__


def check_line(check: Check) -> str:
    """`check` as a JSON object on one line of printable ASCII."""
    findings = [
        _Finding(server, finding.verdict, finding.reason) for server, finding in check.servers
    ]
    return json_line(
        _Item(
            check.sign_domain, check.selector, check.fqdn, check.finding.verdict,
            check.finding.reason, check.alias, check.urgency, check.start_date, check.enable,
            findings,
        )
    )  # fmt: skip


def check_row(check: Check) -> tuple[object, ...]:
    """The cells of CHECK_COLUMNS; `servers` is their number."""
    return (
        check.sign_domain, check.selector, check.fqdn, check.finding.verdict, check.finding.reason,
        check.alias, check.urgency, check.start_date, check.enable, len(check.servers),
    )  # fmt: skip
