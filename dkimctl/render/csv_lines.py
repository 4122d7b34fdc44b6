"""CSV (RFC 4180), with a header row: for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from dkimctl.models.registration import Result
from dkimctl.render.publishable import publishable
from dkimctl.text.escaping import printable

_COLUMNS = (
    "sign_domain", "selector", "outcome", "code", "message", "reason", "key_len", "start_date",
    "default", "enable", "regist_date", "fqdn", "type", "value",
)  # fmt: skip
# A spreadsheet takes a cell that begins so for a formula, and runs it.
_FORMULA_STARTS = ("=", "+", "-", "@")


def render_csv(results: Iterable[Result]) -> Iterator[str]:
    """A header, then a line for each result; only records that may be published are there."""
    return csv_lines(_COLUMNS, map(_row, results))


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A line for the header and each row; nothing in a cell acts on a terminal or spreadsheet."""
    yield ",".join(header) + "\n"
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in rows:
        writer.writerow(map(_cell, row))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _row(result: Result) -> tuple[object, ...]:
    found, record = result.registration, publishable(result)
    return (
        found.sign_domain, found.selector, result.outcome, found.code, found.message, result.reason,
        found.key_len, found.start_date, found.default, found.enable, found.regist_date,
        *(record or ("", "", "")),
    )  # fmt: skip


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = printable(str(value))
    return f"'{text}" if text.startswith(_FORMULA_STARTS) and isinstance(value, str) else text
