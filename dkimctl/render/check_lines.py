"""Checks of DNS for programs: JSON, JSON lines and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dkimctl.publication.verdicts import Check
from dkimctl.render.csv_lines import csv_lines
from dkimctl.render.item import json_line


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


def render_check_json(checks: Iterable[Check]) -> Iterator[str]:
    """One object: `items`, one a line, and their number as `count`."""
    count = 0
    yield '{"items": ['
    for count, check in enumerate(checks, start=1):
        yield f"{',' if count > 1 else ''}\n{_line(check)}"
    yield f'\n], "count": {count}}}\n'


def render_check_jsonl(checks: Iterable[Check]) -> Iterator[str]:
    """An object a line."""
    for check in checks:
        yield f"{_line(check)}\n"


def render_check_csv(checks: Iterable[Check]) -> Iterator[str]:
    """A header, then a line for each; `servers` is how many were asked."""
    return csv_lines(_Item.__struct_fields__, map(_row, checks))


def _line(check: Check) -> str:
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


def _row(check: Check) -> tuple[object, ...]:
    return (
        check.sign_domain, check.selector, check.fqdn, check.finding.verdict, check.finding.reason,
        check.alias, check.urgency, check.start_date, check.enable, len(check.servers),
    )  # fmt: skip
