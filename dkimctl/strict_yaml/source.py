"""From a file to text: of limited size, in UTF-8, and without control characters."""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import Path
from typing import IO

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.text.escaping import printable

MAX_BYTES = 64 << 20
MAX_CONFIG_BYTES = 1 << 20  # of a file that people write by hand

_MARK = codecs.BOM_UTF8
_CHUNK = 1 << 16
MAX_VALUE_BYTES = 4 << 20  # the parser holds a value that it reads several times over

# Refused are control characters, and NEL, LS and PS: for YAML 1.1 these are line breaks, but
# editors do not count them.
_REFUSED = "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"  # compiled when used
_ALLOWED_ASCII = b"\t\n\r" + bytes(range(0x20, 0x7F))
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of a character after its first
_DIRECTIVE = rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])%"


def read_bytes(path: str, *, largest: int = MAX_BYTES, hint_if_missing: str = "") -> bytes:
    """The content of a file or pipe, or of standard input for `-`.

    Raises UsageError if it cannot be read, or has more than `largest` bytes.
    """
    if path == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed", hint="name a file instead of -")
        return _bounded(sys.stdin.buffer, "<stdin>", largest)
    try:
        if Path(path).is_dir():
            from dkimctl.strict_yaml.missing import directory

            raise directory(path)
        with Path(path).open("rb") as file:
            return _bounded(file, path, largest)
    except FileNotFoundError:
        from dkimctl.strict_yaml.missing import missing

        raise missing(path, hint_if_missing) from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise UsageError(
            f"cannot read {printable(path)}: {reason}", hint="check the permissions"
        ) from None


def _bounded(file: IO[bytes], name: str, largest: int) -> bytes:
    data = file.read(largest + 1)
    if len(data) > largest:
        message = f"{printable(name)} is larger than {largest >> 20} MiB"
        raise UsageError(message, hint="split it into several files")
    return data


class Text:
    """The text of a file in UTF-8, with or without a byte order mark, which is read in chunks.

    `how_to_save` is the hint for text in another encoding.
    """

    def __init__(
        self, data: bytes, name: str, *, how_to_save: str = "save it as UTF-8 text"
    ) -> None:
        self.name = name
        self.size = len(data)
        self._how_to_save = how_to_save
        self._data = data
        self._start = self._position = len(_MARK) if data.startswith(_MARK) else 0
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self._error(0, "the file is in UTF-16", how_to_save.removesuffix(" text"))

    def next_chunk(self) -> bytes:
        """Whole characters; b"" at the end. Raises InputError for what is not text."""
        chunk = self._data[self._position : self._end_of_chunk()]
        if chunk.translate(None, _ALLOWED_ASCII):
            self._check(chunk)
        self._position += len(chunk)
        return chunk

    def _end_of_chunk(self) -> int:
        """Where the next chunk ends: between two characters."""
        end = self._position + _CHUNK
        for _ in range(3):
            if self._data[end : end + 1] and self._data[end] in _CONTINUATION:
                end -= 1
        return end

    def _check(self, chunk: bytes) -> None:
        try:
            text = chunk.decode()
        except UnicodeDecodeError as error:
            place = self._position + error.start
            byte = chunk[error.start]
            message = f"byte 0x{byte:02x} is not UTF-8: the file is binary, or in another encoding"
            raise self._error(place, message, self._how_to_save) from None
        if refused := re.search(_REFUSED, text):
            place = self._position + len(text[: refused.start()].encode())
            message = f"the character U+{ord(refused[0]):04X} is not allowed"
            hint = f"remove it; a file with many is binary or UTF-16: {self._how_to_save}"
            raise self._error(place, message, hint)

    def _error(self, place: int, message: str, hint: str) -> InputError:
        """The error about the byte at `place`, all before which is UTF-8."""
        data, start = self._data, self._start
        breaks = data.count(b"\n", start, place) + data.count(b"\r", start, place)
        breaks -= data.count(b"\r\n", start, place)
        start = max(start, data.rfind(b"\n", start, place) + 1, data.rfind(b"\r", start, place) + 1)
        column = len(data[start:place].translate(None, _CONTINUATION)) + 1
        return InputError([Problem(self.name, breaks + 1, column, message, hint)])


class Source(Text):
    """The text of a YAML document for a parser.

    `unclaimed` counts the bytes that have been read; the reader of the parser's events sets it to 0
    with each of them. Where it passes 4 MiB, the text `is_cut`: it ends there for the parser, which
    would need many times the memory of a huge value.
    """

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data, name)
        self.unclaimed = 0
        self.is_cut = False

    def read(self, _size: int = 0, /) -> bytes:
        """The next chunk, of any size; b"" at the end. Raises InputError for what is not text."""
        if self.unclaimed > MAX_VALUE_BYTES and self._position < self.size:
            self.is_cut = True
        if self.is_cut:
            return b""
        start = self._position
        chunk = self.next_chunk()
        if b"%" in chunk:
            self._refuse_directives(start, start + len(chunk))
        self.unclaimed += len(chunk)
        return chunk

    def _refuse_directives(self, start: int, end: int) -> None:
        """Refuse them here: the parser's time grows with the square of their number."""
        if directive := re.compile(_DIRECTIVE).search(self._data, max(start - 1, 0), end):
            hint = "remove the line that begins with %"
            raise self._error(directive.end() - 1, "YAML directives are not supported", hint)
