"""CSV (RFC 4180), with a header row: for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence

from dkimctl.models.registration import Result
from dkimctl.render.records import publishable
from dkimctl.render.renderer import ItemT, Renderer
from dkimctl.text.escaping import printable

RESULT_COLUMNS = (
    "sign_domain", "selector", "outcome", "code", "message", "reason", "key_len", "start_date",
    "default", "enable", "regist_date", "fqdn", "type", "value",
)  # fmt: skip
# What a spreadsheet runs as a formula at the start of a cell (OWASP, "CSV Injection"), also in
# full width. Every separator, and every quote that is dropped, can start a cell for a program that
# splits lines otherwise. Text that has our quote already gets another, so it can be undone.
_FORMULA_START = re.compile(r"""(^|[;|,"])(\s*)(?='*[-=+@\uff1d\uff0b\uff0d\uff20])""")


class CsvRenderer(Renderer[ItemT]):
    """A header, then one line for each item; cells are safe for terminals and spreadsheets."""

    def __init__(self, columns: Sequence[str], row: Callable[[ItemT], Sequence[object]]) -> None:
        self._columns = columns
        self._row = row
        self._buffer = io.StringIO()
        self._writer = csv.writer(self._buffer, lineterminator="\n")

    def begin(self) -> str:
        return ",".join(self._columns) + "\n"

    def add(self, item: ItemT) -> str:
        self._writer.writerow(map(_cell, self._row(item)))
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text


def result_row(result: Result) -> tuple[object, ...]:
    """The cells of RESULT_COLUMNS; those of the record are empty unless it may be published."""
    registration = result.registration
    return (
        registration.sign_domain, registration.selector, result.outcome, registration.code,
        registration.message, result.reason, registration.key_len, registration.start_date,
        registration.default, registration.enable, registration.regist_date,
        *(publishable(result) or ("", "", "")),
    )  # fmt: skip


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = printable(str(value))
    return _FORMULA_START.sub(r"\1\2'", text) if isinstance(value, str) else text
