"""A spec file in CSV, as spreadsheets write it: a row for each entry below a header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.specs.csv_table import Place, Table
from dkimctl.specs.entries import Entries
from dkimctl.specs.fields import ENTRY_FIELDS
from dkimctl.strict_yaml.document import MAX_VALUE, suggestion
from dkimctl.strict_yaml.nodes import Converter
from dkimctl.text.escaping import quoted
from dkimctl.text.grouping import counted

# What our own CSV has beside the fields of an entry: answers, which are not sent again.
ANSWER_COLUMNS = frozenset((
    "age_days", "alias", "code", "created_at", "due", "fqdn", "looked_at", "message", "name",
    "next", "note", "outcome", "published_at", "reason", "regist_date", "removable_at",
    "removed_at", "replaced_at", "servers", "since", "stage", "starts_at", "state", "type",
    "urgency", "value", "verdict",
))  # fmt: skip
_EXAMPLE = "begin the file with a line such as 'sign_domain,selector'"
_MAX_COLUMNS = 256
_BOOLEANS = {"TRUE": "true", "FALSE": "false"}  # as spreadsheets write them


class _Column(NamedTuple):
    """`at` is its position, and `convert` gives the value of a cell."""

    at: int
    name: str
    convert: Converter[object]


def read_csv(data: bytes, name: str, entries: Entries) -> None:
    """Add the entries of a file, which problems call `name`.

    An empty cell is a field that is not stated. Raises InputError with every problem found.
    """
    table = Table(data, name)
    try:
        header = table.header(ENTRY_FIELDS)
    except InputError:
        _refuse_other_file(data, name)
        raise
    if not header:
        raise InputError([Problem(name, 1, 1, "the file is empty", _EXAMPLE)])
    if not ENTRY_FIELDS.keys() & set(header):
        _refuse_other_file(data, name)
    columns = _columns(table, header)
    for cells in table.rows():
        if any(map(str.strip, cells)):
            _read_row(table, columns, len(header), cells, entries)
    table.close()


def _refuse_other_file(data: bytes, name: str) -> None:
    """If the file is no table with the columns of a spec file, one problem says what it is."""
    from dkimctl.specs.other_files import advice_on_table

    if advised := advice_on_table(data):
        raise InputError([Problem(name, 1, 1, *advised)]) from None


def _columns(table: Table, header: Sequence[str]) -> list[_Column]:
    if len(header) > _MAX_COLUMNS:
        message = f"more than {_MAX_COLUMNS} columns"
        table.stop(table.cell(_MAX_COLUMNS), message, "remove those that are not needed")
    columns: dict[str, _Column] = {}
    for at, name in enumerate(header):
        if name in columns:
            message = f"the column {quoted(name)} is already column {columns[name].at + 1}"
            table.problem(table.cell(at), message, "remove one of the two")
        elif convert := ENTRY_FIELDS.get(name):
            columns[name] = _Column(at, name, convert)
        elif name and name not in ANSWER_COLUMNS:
            hint = suggestion(name, ENTRY_FIELDS, "columns")
            table.problem(table.cell(at), f"a spec file has no column {quoted(name)}", hint)
    if "sign_domain" not in columns:
        table.stop(table.row, "the column sign_domain is missing", _EXAMPLE)
    return list(columns.values())


def _read_row(
    table: Table, columns: Sequence[_Column], width: int, cells: Sequence[str], entries: Entries
) -> None:
    row = table.row
    entries.require_room(table, row)
    if len(cells) < width:
        message = f"the row has {counted(len(cells), 'cell')}, and the header {width}"
        table.problem(row, message, "add the separators of the empty cells, and check the quotes")
    elif any(map(str.strip, cells[width:])):
        message = f"the row has {counted(len(cells), 'cell')}, and the header {width}"
        hint = "put a cell that contains the separator in quotes"
        table.problem(table.cell(width), message, hint)
    else:
        fields = {
            name: _value(table, at, name, convert, text)
            for at, name, convert in columns
            if (text := cells[at].strip(" \t"))
        }
        entries.add(table, row, fields)


def _value(table: Table, at: int, name: str, convert: Converter[object], text: str) -> Any:
    """The value of a cell; None after a problem."""
    if len(text) > MAX_VALUE:  # before any pattern sees it
        message = f"{name} is longer than {MAX_VALUE:,} characters"
        table.problem(table.cell(at), message, "check the quotes and the separators")
        return None
    try:
        return convert(_BOOLEANS.get(text, text) if name == "enable" else text, True)
    except UsageError as error:
        _report(table, table.cell(at), name, text, error)
        return None


def _report(table: Table, place: Place, name: str, text: str, error: UsageError) -> None:
    from dkimctl.specs.spreadsheets import changed_by_spreadsheet

    message, hint = changed_by_spreadsheet(name, text) or (error.message, error.hint)
    table.problem(place, f"{name}: {message}", hint)
