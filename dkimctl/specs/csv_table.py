"""A table in CSV (RFC 4180), row by row, with the place of each cell.

Its cells are separated by commas, semicolons or tabs: by what separates its headings.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, NoReturn

from dkimctl.strict_yaml.nodes import Node
from dkimctl.strict_yaml.problems import Problems
from dkimctl.strict_yaml.source import Text

_DELIMITERS = ",;\t"
_MAX_ROW = 1 << 20  # characters
_MAX_CELL = 1 << 17  # characters, the limit of Python's csv module
_MAX_LINES = 1 << 20  # the rows of a spreadsheet; to read them, all empty, takes 1 s
_SAVE = "save it as UTF-8 text, which spreadsheets call 'CSV UTF-8'"
_QUOTES = 'put the whole cell in quotes, and write a quote inside it twice, as in "a ""b"" c"'


class Place(NamedTuple):
    """Where a row or cell begins; both count from 0."""

    line: int
    column: int

    @property
    def start_mark(self) -> Place:
        return self


class Table:
    """A table in a file that problems call `name`; call `header` first, then `rows`.

    What cannot be read raises InputError, with all problems so far.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self._text = Text(data, name, how_to_save=_SAVE)
        self._problems = Problems(name)
        self._delimiter = ","
        self._row: list[str] = []  # the lines of the row that is read
        self._length = 0  # of `_row`, in characters
        self._line = 0  # lines read
        self._lines = self._read_lines()

    def header(self, known: Collection[str]) -> Sequence[str]:
        """The first row, without spaces around its words; () for an empty file.

        What separates the words is what gives most of the `known` ones.
        """
        for line in self._lines:
            if line.strip():
                first = line
                break
            self._end_row()
        else:
            return ()
        self._delimiter = max(
            _DELIMITERS,
            key=lambda one: (len(_words(first, one) & set(known)), first.count(one)),
        )
        self._rows = self._read_rows(first)
        return [word.strip() for word in next(self._rows, ())]

    def rows(self) -> Iterator[list[str]]:
        """The cells of each row below the header but empty lines."""
        return self._rows

    @property
    def row(self) -> Place:
        """Where the row begins that was read last."""
        return Place(self._line - len(self._row), 0)

    def cell(self, at: int) -> Place:
        """Where a cell of that row begins."""
        starts = (start for start, _ in self._cells())
        return self._place(next(itertools.islice(starts, at, None)))

    def problem(self, node: Node, message: str, hint: str) -> None:
        self._problems.add(node.start_mark, message, hint)
        if self._problems.are_too_many:
            raise self._problems.error()

    def stop(self, node: Node, message: str, hint: str) -> NoReturn:
        self._problems.add(node.start_mark, message, hint)
        raise self._problems.error() from None

    def close(self) -> None:
        """Raise InputError if there are problems."""
        if self._problems:
            raise self._problems.error()

    def _read_rows(self, first: str) -> Iterator[list[str]]:
        lines = itertools.chain([first], self._lines)
        try:
            for cells in csv.reader(lines, delimiter=self._delimiter, strict=True):
                if cells:
                    yield cells
                self._end_row()
        except csv.Error:
            self._refuse()

    def _end_row(self) -> None:
        self._row.clear()
        self._length = 0

    def _read_lines(self) -> Iterator[str]:
        """The lines, with their ends; each is added to `_row`."""
        rest = ""
        while chunk := self._text.next_chunk():
            # The last one may go on, and a CR be half of a line break.
            *lines, rest = (rest + chunk.decode()).splitlines(keepends=True)
            for line in lines:
                self._add(line)
                yield line
            if len(rest) > _MAX_ROW:
                self._add(rest)
        if rest:
            self._add(rest)
            yield rest

    def _add(self, line: str) -> None:
        self._row.append(line)
        self._line += 1
        self._length += len(line)
        if self._length > _MAX_ROW:
            message = f"a row is longer than {_MAX_ROW:,} characters"
            self.stop(self.row, message, "check the quotes")
        if self._line > _MAX_LINES:
            hint = "remove empty lines, or split the file"
            self.stop(self.row, f"more than {_MAX_LINES:,} lines", hint)

    def _cells(self) -> Iterator[tuple[int, int]]:
        """Where the cells of the row begin and end in its text."""
        text = "".join(self._row)
        cell = re.compile(rf'"[^"]*(?:""[^"]*)*(?:"|\Z)|[^{self._delimiter}\r\n]*')
        start = 0
        while match := cell.match(text, start):
            yield match.span()
            start = match.end() + 1
            if text[match.end() : start] != self._delimiter:
                return

    def _refuse(self) -> NoReturn:
        """Stop at the cell that the csv module refuses."""
        text = "".join(self._row)
        start = end = 0
        for start, end in self._cells():
            if end - start > _MAX_CELL:
                break
        cell = text[start:end]
        if cell.startswith('"') and (end == len(text) or len(cell) > _MAX_CELL):
            message = f"a cell in quotes has no end, or is longer than {_MAX_CELL:,} characters"
            self.stop(self._place(start), message, "close the quotes")
        if len(cell) > _MAX_CELL:
            message = f"a cell is longer than {_MAX_CELL:,} characters"
            self.stop(self._place(start), message, "shorten it")
        self.stop(self._place(end), "text after the closing quote of a cell", _QUOTES)

    def _place(self, at: int) -> Place:
        """The place of a character of the row's text."""
        line = self.row.line
        for text in self._row:
            if at < len(text):
                return Place(line, at)
            line, at = line + 1, at - len(text)
        return Place(line - 1, len(self._row[-1]) + at)


def _words(line: str, delimiter: str) -> set[str]:
    return {word.strip().strip('"').strip() for word in line.split(delimiter)}
