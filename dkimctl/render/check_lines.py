"""Checks of DNS for programs: JSON, JSON lines and CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dkimctl.publication import Check
from dkimctl.render.csv_lines import csv_lines

_COLUMNS = (
    "sign_domain", "selector", "fqdn", "verdict", "reason", "alias", "urgency", "start_date",
    "enable", "servers",
)  # fmt: skip


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
    return csv_lines(_COLUMNS, map(_row, checks))


def _line(check: Check) -> str:
    item = {
        "sign_domain": check.sign_domain,
        "selector": check.selector,
        "fqdn": check.fqdn,
        "verdict": check.finding.verdict,
        "reason": check.finding.reason,
        "alias": check.alias,
        "urgency": check.urgency,
        "start_date": check.start_date,
        "enable": check.enable,
        "servers": [
            {"server": server, "verdict": finding.verdict, "reason": finding.reason}
            for server, finding in check.servers
        ],
    }
    # DEL is ASCII and needs no escape in JSON, but terminals act on it.
    return json.dumps(item, separators=(",", ":")).replace("\x7f", "\\u007f")


def _row(check: Check) -> tuple[object, ...]:
    return (
        check.sign_domain, check.selector, check.fqdn, check.finding.verdict, check.finding.reason,
        check.alias, check.urgency, check.start_date, check.enable, len(check.servers),
    )  # fmt: skip
