"""The entries of spec files, in YAML, CSV or a plain list, and those of domains given by name."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NoReturn

from dkimctl import input_files
from dkimctl.errors import InputError, Problem, UsageError, naming
from dkimctl.input_files import FileKind
from dkimctl.names import is_file, is_ordinary, parse_domain
from dkimctl.specs.entries import ENTRY_FIELDS, Entries, first_defaults, read_defaults, read_entry
from dkimctl.strict_yaml import MAX_LISTED, Document, Node, Place, Problems
from dkimctl.text import counted, few, printable, quoted

_DOMAIN = "--domain"
_YAML_EXAMPLE = "write a list such as '- example.com', or [] for no domains"
# Other headings of our fields, in lower case and with an underscore for blanks and hyphens.
_ALIASES = {"bits": "key_len", "key_length": "key_len", "enabled": "enable"}
# Our own CSV has one of these beside the fields of an entry. It holds answers, which nobody sends.
_ANSWERS = {"outcome", "stage", "verdict"}
_MAX_ROW = 1 << 20  # characters; also the most lines, as in a spreadsheet
_CSV_EXAMPLE = "begin the file with a line such as 'sign_domain,selector'"


def read_specs(
    *paths: str, domains: Sequence[str] = (), stated: Mapping[str, Any] | None = None,
    defaults: Mapping[str, object] | None = None,
    warn: Callable[[str], object] = lambda _sentence: None,
) -> Entries:  # fmt: skip
    """The entries of spec files, of which `-` is standard input, and then those of `domains`.

    `defaults` are the profile's fields, already checked. Those of a file take precedence over them,
    and the fields of an entry over both. `domains`, and the names of a plain list, have the fields
    `stated`, else the `defaults`, else those that `init` writes. `warn` gets a sentence about what
    is left out. Raises UsageError for a file that cannot be read, or a wrong domain, and InputError
    with every problem in the files.
    """
    if repeated := _repeated(paths):
        raise UsageError(f"{printable(repeated)} is named twice", hint="name each file once")
    entries = Entries()
    problems: list[Problem] = []
    for path in paths:
        is_domain = is_ordinary(path) and not is_file(path)
        hint = f"for the domain itself: `dkimctl register --domain {path}`" if is_domain else ""
        data = input_files.read_bytes(path, hint_if_missing=hint)
        try:
            name = "<stdin>" if path == "-" else path
            add_entries(entries, data, name, defaults, warn, stated=stated)
        except InputError as error:
            problems += error.problems
        if len(problems) > MAX_LISTED:
            break
    if problems:
        raise InputError(problems)
    with naming(_DOMAIN):
        for domain in domains:
            if is_file(domain) and is_ordinary(domain.lower()):
                hint = f"write {domain} without --domain"
                raise UsageError(f"{domain} is the name of a file", hint=hint)
        names = [parse_domain(domain) for domain in domains]
        if repeated := _repeated(names):
            raise UsageError(f"{repeated} is named twice", hint="name each domain once")
        entries.begin(_DOMAIN)
        fields = _of_names(defaults, stated)
        for name in names:
            entries.add(_Words(_DOMAIN), Place(-1, -1), {"sign_domain": name, **fields})
    return entries


def _of_names(
    defaults: Mapping[str, object] | None, stated: Mapping[str, object] | None
) -> Mapping[str, object]:
    """The fields of domains that are only named."""
    fields = {**(defaults or {}), **(stated or {})}
    implied = {key: value for key, value in first_defaults().items() if key not in fields}
    return {**fields, **implied, "implied": tuple(implied)}


def add_entries(
    entries: Entries, data: bytes, name: str, defaults: Mapping[str, object] | None,
    warn: Callable[[str], object], *, stated: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Add those of a file, which problems call `name`. Raises UsageError."""
    entries.begin(name)
    kind = input_files.guess_kind(data)  # what is valid as one of them, is never of another
    of_names, of_file = _of_names(defaults, stated), dict[str, Any]()
    only_names = kind is FileKind.LIST
    if kind is FileKind.LIST:
        read_list(_Table(data, name), entries, of_names)
    elif kind is FileKind.CSV or (kind is not FileKind.SPECS and name.lower().endswith(".csv")):
        only_names = read_table(_Table(data, name), kind, entries, of_names, warn)
    else:
        of_file = _read_yaml(data, name, kind, entries)
    entries.end({**(defaults or {}), **of_file})
    for field in () if only_names else stated or ():
        option = f"--{field.replace('_', '-')}"
        message = f"{option} is for --domain and plain lists, not for {printable(name)}"
        hint = f"write {field} into the file, or register the domains on their own"
        raise UsageError(message, hint=hint)


def _repeated(words: Iterable[str]) -> str | None:
    return next((word for word, count in Counter(words).items() if count > 1), None)


class _Words(Problems):
    """Those of the command line, of which the first is an error."""

    def problem(self, _node: Node, message: str, hint: str) -> NoReturn:
        raise UsageError(message, hint=hint)


def _read_yaml(data: bytes, name: str, kind: FileKind | None, entries: Entries) -> dict[str, Any]:
    """Add the entries of a YAML file: a list, or `domains:`; returns its `defaults:`."""
    defaults: dict[str, Any] = {}
    count_before = entries.count

    def read_list(node: Node, what: str) -> None:
        for item in document.items(node, what):
            entries.add(document, item, read_entry(document, item, entries))

    try:
        with Document(data, name) as document:
            root = document.root()
            if root is None:
                raise InputError([Problem(name, 1, 1, "the file is empty", _YAML_EXAMPLE)])
            if not document.is_mapping(root):
                read_list(root, "a spec file")
                return defaults
            keys = set()
            for key, value in document.pairs(root, "a spec file"):
                keys.add(key.value)
                if key.value == "domains":
                    read_list(value, "domains")
                elif key.value == "defaults":  # which may come after the entries
                    defaults = read_defaults(document, value, entries)
                else:
                    document.unknown_key(key, "a spec file", ("domains", "defaults"))
            if "domains" not in keys:
                document.problem(root, "a spec file needs a list", "write it below domains:")
    except InputError:
        # If it is another file altogether, one problem says so, in place of all the others.
        is_known = kind in (FileKind.SPECS, FileKind.EMPTY)
        if kind and not is_known and entries.count == count_before:
            message = f"the file {kind.what}, not a spec file"
            raise InputError([Problem(name, 1, 1, message, kind.hint)]) from None
        raise
    return defaults


def read_list(table: _Table, entries: Entries, fields: Mapping[str, object]) -> None:
    """Add the domains of a plain list, one a line, each with these fields."""
    for line in table.lines():
        text = re.sub(input_files.COMMENT, "", line.rstrip("\r\n"))
        if name := text.strip():
            place, domain = Place(table.row.line, text.index(name)), None
            try:
                domain = parse_domain(name)
            except UsageError as error:
                table.problem(place, error.message, error.hint)
            entries.add(table, place, {"sign_domain": domain, **fields})
    table.close()


def read_table(
    table: _Table, kind: FileKind | None, entries: Entries, of_names: Mapping[str, object],
    warn: Callable[[str], object],
) -> bool:  # fmt: skip
    """Add the entries of a table. An empty cell is not stated; unknown columns are left out.

    If it only names domains, they get the fields `of_names`; returns whether it does.
    """
    header = [heading.strip() for heading in next(table.rows, ())]
    columns: dict[str, int] = {}
    unknown = []
    for at, heading in enumerate(header):
        field = re.sub(r"[\s_-]+", "_", heading.lower())
        is_domain = re.fullmatch(input_files.DOMAIN_HEADING, heading)
        field = "sign_domain" if is_domain else _ALIASES.get(field, field)
        if field in columns:
            message = f"the column {quoted(heading)} is already column {columns[field] + 1}"
            table.problem(table.cell(at), message, "remove one of the two")
        elif field in ENTRY_FIELDS:
            columns[field] = at
        elif heading and not _ANSWERS & {*header}:
            unknown.append(quoted(heading))
    if "sign_domain" not in columns:
        if header and kind in (None, FileKind.CSV):
            table.stop(table.row, "the column sign_domain is missing", _CSV_EXAMPLE)
        kind = kind or FileKind.EMPTY
        table.stop(Place(0, 0), f"the file {kind.what}, not a table (CSV)", kind.hint)
    if unknown:
        warn(f"{printable(table.name)}: unknown columns are left out: {few(unknown)}")
    only_names = len(columns) == 1
    for cells in table.rows:
        if len(cells) < len(header) or any(cells[len(header) :]):
            place = table.cell(min(len(cells) - 1, len(header)))
            message = f"the row has {counted(len(cells), 'cell')}, and the header {len(header)}"
            hint = "put a cell that contains the separator in quotes, and add those of empty cells"
            table.problem(place, message, hint)
            continue
        fields = dict(of_names) if only_names else {}
        for field, at in columns.items():
            if text := cells[at].strip(" \t"):
                if field == "enable" and text in ("TRUE", "FALSE"):  # as spreadsheets write them
                    text = text.lower()
                try:
                    fields[field] = ENTRY_FIELDS[field](text, True)
                except UsageError as error:
                    fields[field] = None
                    table.problem(table.cell(at), f"{field}: {error.message}", error.hint)
                if field == "start_date":
                    entries.note_date(fields[field], table.cell(at))
        entries.add(table, table.row, fields)
    table.close()
    return only_names


class _Table(Problems):
    """The lines of a file, or its rows as CSV from the header on, and the places of their cells."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(name)
        self.name, self._data = name, data
        self._delimiter = ","
        self._lines: list[str] = []  # of the row that was read last
        self._line = 0  # lines read
        self.rows = self._read_rows()

    @property
    def row(self) -> Place:
        """Where that row begins."""
        return Place(self._line - len(self._lines), 0)

    def cell(self, at: int) -> Place:
        """Where a cell of that row begins; the last that can be read, if that comes first."""
        text = "".join(self._lines)
        pattern = re.compile(rf'"[^"]*(?:""[^"]*)*"?|[^{self._delimiter}\r\n]*')
        start = 0
        for _ in range(at):
            end = pattern.match(text, start).end()  # type: ignore[union-attr] # it can be empty
            if text[end : end + 1] != self._delimiter or end - start > csv.field_size_limit():
                break
            start = end + 1
        before = re.split("\r\n|\r|\n", text[:start])
        return Place(self.row.line + len(before) - 1, len(before[-1]))

    def lines(self) -> Iterator[str]:
        """The lines; each is a row of its own."""
        for line in self._read_lines():
            yield line
            self._lines.clear()

    def _read_rows(self) -> Iterator[list[str]]:
        lines, separator, first = self._read_lines(), "", ""
        for first in lines:
            if match := re.fullmatch(input_files.SEPARATOR, first):
                separator = match[1]
            elif first.strip():
                break
            self._lines.clear()
        with suppress(csv.Error):  # it cannot tell of one word; then a comma is as good
            self._delimiter = separator or csv.Sniffer().sniff(first[:1000], ",;\t").delimiter
        try:
            for cells in csv.reader(chain([first], lines), delimiter=self._delimiter, strict=True):
                if any(map(str.strip, cells)):
                    yield cells
                self._lines.clear()
        except csv.Error:
            message = "a cell in quotes does not end as it must, or is longer than"
            hint = 'close the quotes, and write a quote in a cell twice: "a ""b"" c"'
            self.stop(self.cell(_MAX_ROW), f"{message} 131,072 characters", hint)

    def _read_lines(self) -> Iterator[str]:
        """The lines, with their ends; each is added to `_lines`."""
        text = input_files.Text(
            self._data, self.name, how_to_save="save it as UTF-8 text, in spreadsheets 'CSV UTF-8'"
        )
        length = 0
        for line in text.lines(_MAX_ROW + 1):
            length = length + len(line) if self._lines else len(line)
            self._lines.append(line)
            self._line += 1
            if length > _MAX_ROW or self._line > _MAX_ROW:
                message = f"a row of more than {_MAX_ROW:,} characters, or more such lines"
                self.stop(self.row, message, "check the quotes, or split the file")
            yield line
