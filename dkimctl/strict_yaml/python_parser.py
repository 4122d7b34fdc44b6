"""PyYAML's own parser, for platforms where it comes without libyaml.

It differs from libyaml in tabs, which libyaml reads as YAML 1.2 does (sections 6.2 and 7.4), so
that JSON can be indented with them; and in escapes of surrogates and of numbers that Unicode does
not have. This subclass accepts and refuses the same as libyaml.
"""

from __future__ import annotations

from yaml.error import Mark
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError

from dkimctl.errors import UsageError
from dkimctl.strict_yaml.source import Source
from dkimctl.text.escaping import printable

MAX_BYTES = 3 << 20  # which it reads in 10 s


class PythonParser(Reader, Scanner, Parser):
    """Reads a Source. Raises UsageError if that is too large."""

    def __init__(self, source: Source) -> None:
        if source.size > MAX_BYTES:
            raise UsageError(
                f"{printable(source.name)} is larger than {MAX_BYTES >> 20} MiB, "
                "the most that PyYAML reads without libyaml",
                hint="split it into several files, or install a PyYAML that has libyaml",
            )
        Reader.__init__(self, source)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments and line breaks; a tab only where it cannot be indentation."""
        while True:
            while self.peek() == " " or (self.peek() == "\t" and self._allows_tab()):
                self.forward()
            if self.peek() == "#":
                while self.peek() not in "\0\r\n":
                    self.forward()
            if not self.scan_line_break():  # type: ignore[no-untyped-call]
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def scan_plain_spaces(self, indent: int, start_mark: Mark) -> list[str] | None:
        """What joins two words of a plain scalar; None if the document ends before the second."""
        blanks = self._blanks()
        self.forward(len(blanks))
        breaks = []
        while line_break := self.scan_line_break():  # type: ignore[no-untyped-call]
            breaks.append(line_break)
            self.allow_simple_key = True
            if self.prefix(3) in {"---", "..."} and self.peek(3) in "\0 \t\r\n":
                return None
            indentation = self._blanks()
            if "\t" in indentation[:indent]:
                self.forward(indentation.index("\t"))
                raise ScannerError(
                    "while scanning a plain scalar",
                    start_mark,
                    "found a tab character that violates indentation",
                    self.get_mark(),
                )
            self.forward(len(indentation))
        if breaks:
            return breaks[1:] or [" "]
        return [blanks] if blanks else []

    def scan_flow_scalar_non_spaces(self, double: bool, start_mark: Mark) -> list[str]:
        """A part of a quoted scalar; escapes of surrogates, or beyond Unicode, are errors."""
        try:
            chunks: list[str] = super().scan_flow_scalar_non_spaces(double, start_mark)
            "".join(chunks).encode()
        except (ValueError, OverflowError):
            raise ScannerError(
                "while parsing a quoted scalar",
                start_mark,
                "found invalid Unicode character escape code",
                self.get_mark(),
            ) from None
        return chunks

    def _allows_tab(self) -> bool:
        return bool(self.flow_level) or not self.allow_simple_key

    def _blanks(self) -> str:
        """The blanks that come next."""
        length = 0
        while self.peek(length) in " \t":
            length += 1
        blanks: str = self.prefix(length)
        return blanks
