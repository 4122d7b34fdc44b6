"""JSON, JSON Lines and CSV: for programs and spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dkimctl.formats.renderer import ItemT, Renderer
from dkimctl.text import printable

# What a spreadsheet runs as a formula at the start of a cell (OWASP, "CSV Injection"), also in
# full width. Every separator, and every quote that is dropped, can start a cell for a program that
# splits lines otherwise. Text that has our quote already gets another, so it can be undone.
_FORMULA_START = re.compile(r"""(^|[;|,"])(\s*)(?='*[-=+@\uff1d\uff0b\uff0d\uff20])""")

# An item as JSON on one line of printable ASCII.
json_line = json.JSONEncoder(separators=(",", ":")).encode


def open_data(
    fmt: str, columns: Sequence[str], row: Callable[[ItemT], Iterable[object]], *counted_as: str,
    fields: Callable[[ItemT], Mapping[str, object]] | None = None,
) -> Renderer[ItemT]:  # fmt: skip
    """The renderer of items in a format for programs: "json", "jsonl" or "csv".

    `row` has the cells of an item below `columns`; JSON has the same, or other `fields`.
    """
    if fmt == "csv":
        return CsvRenderer(columns, row)
    fields = fields or (lambda item: dict(zip(columns, row(item), strict=True)))
    return JsonlRenderer(fields) if fmt == "jsonl" else JsonRenderer(fields, *counted_as)


class JsonRenderer(Renderer[ItemT]):
    """One object: `items`, one on each line, then their number under each key in `counted_as`."""

    def __init__(self, fields: Callable[[ItemT], Mapping[str, object]], *counted_as: str) -> None:
        self._fields = fields
        self._counted_as = counted_as
        self._count = 0

    def begin(self) -> str:
        return '{"items": ['

    def add(self, item: ItemT) -> str:
        self._count += 1
        return f"{',' if self._count > 1 else ''}\n{json_line(self._fields(item))}"

    def end(self) -> Iterator[str]:
        counts = "".join(f', "{key}": {self._count}' for key in self._counted_as)
        yield f"\n]{counts}}}\n"


class JsonlRenderer(Renderer[ItemT]):
    """One item on each line."""

    def __init__(self, fields: Callable[[ItemT], Mapping[str, object]]) -> None:
        self._fields = fields

    def add(self, item: ItemT) -> str:
        return f"{json_line(self._fields(item))}\n"


class CsvRenderer(Renderer[ItemT]):
    """A header (RFC 4180), then one line for each item; safe for terminals and spreadsheets."""

    def __init__(self, columns: Sequence[str], row: Callable[[ItemT], Iterable[object]]) -> None:
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


def _cell(value: object) -> str:
    """The text of a cell: of a list the number of its items, of a tuple its words."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        value = " ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return str(len(value))
    text = printable(str(value))
    if isinstance(value, str) and _FORMULA_START.search(text):
        return _FORMULA_START.sub(r"\1\2'", text)  # slow, even where it changes nothing
    return text
