"""Files that people give: read within limits, in UTF-8, without control characters.

Where one is missing, or of another kind than it should be, the error says so. The kind is guessed
from the beginning of the file, of which nothing is ever quoted.
"""

from __future__ import annotations

import codecs
import difflib
import io
import itertools
import os
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.text import printable

MAX_BYTES = 64 << 20
MAX_CONFIG_BYTES = 1 << 20  # of a file that people write by hand
_MAX_NAMES = 1_000  # of a directory: comparing them takes long
_MAX_NAME = 100  # characters

_MARK = codecs.BOM_UTF8
# Refused are control characters, and NEL, LS and PS: for YAML 1.1 these are line breaks, but
# editors do not count them. The patterns are text, which `re` compiles only if there is a mistake.
_REFUSED = "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
_ALLOWED_ASCII = b"\t\n\r" + bytes(range(0x20, 0x7F))
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of a character after its first


def read_bytes(
    path: str,
    *,
    largest: int = MAX_BYTES,
    hint_if_missing: str = "",  # where no other file resembles it
    hint_if_large: str = "split it into several files",
) -> bytes:
    """The content of a file or pipe, or of standard input for `-`. Raises UsageError."""
    name = "<stdin>" if path == "-" else printable(path)
    if not path:
        raise UsageError("the file name is empty", hint="check the variable it comes from")
    try:
        if path != "-":
            if Path(path).is_dir():
                files = [*filter(re.compile(r"(?i)\.ya?ml\Z").search, _names(Path(path)))]
                such = f", such as {Path(path, min(files))}" if files else ""
                raise UsageError(f"{name} is a directory", hint=f"name a file in it{such}")
            with Path(path).open("rb") as file:
                data = file.read(largest + 1)
        elif sys.stdin is None:
            raise UsageError("standard input is closed", hint="name a file instead of -")
        else:
            data = sys.stdin.buffer.read(largest + 1)
    except FileNotFoundError:
        raise _missing(path, hint_if_missing) from None
    except OSError as error:
        message = f"cannot read {name}: {error.strerror or 'it cannot be opened'}"
        raise UsageError(message, hint="check the permissions") from None
    if len(data) > largest:
        raise UsageError(f"{name} is larger than {largest >> 20} MiB", hint=hint_if_large)
    return data


def _missing(path: str, hint: str) -> UsageError:
    if "://" in path:  # not quoted, since it may hold a password
        hint = "download it first, such as with `curl -fsSo FILE URL`"
        return UsageError("a URL is not a file", hint=hint)
    # Of the names, what comes before the last dot counts; .yaml comes after .csv.
    stems = {Path(name.lower()).stem: name for name in sorted(_names(Path(path).parent))}
    stem = Path(Path(path).name.lower()[:_MAX_NAME]).stem
    if near := difflib.get_close_matches(stem, stems, n=1, cutoff=0.75):
        hint = f"did you mean {Path(path).with_name(stems[near[0]])}?"
    elif any(char in path for char in "~*?["):
        hint = "write it without quotes, for the shell to expand it; without any, no file matches"
    return UsageError(f"no such file: {printable(path)}", hint=hint or "check the path")


def _names(path: Path) -> list[str]:
    """The names of the files in a directory; none if it cannot be read."""
    try:
        with os.scandir(path) as entries:
            files = (entry.name for entry in entries if entry.is_file())
            return [name for name in itertools.islice(files, _MAX_NAMES) if len(name) <= _MAX_NAME]
    except OSError:
        return []


class Text:
    """The text of a file in UTF-8, with or without a byte order mark, which is read in chunks."""

    def __init__(
        self, data: bytes, name: str, *, how_to_save: str = "save it as UTF-8 text"
    ) -> None:
        self.name = name
        self.data = data
        self._how_to_save = how_to_save
        self.position = self._start = len(_MARK) if data.startswith(_MARK) else 0
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            kind = FileKind.UTF_16
            raise self.error(0, f"the file {kind.what}", kind.hint)

    def next_chunk(self) -> bytes:
        """Whole characters; b"" at the end. Raises InputError for what is not text."""
        end = self.position + (1 << 16)
        for _ in range(3):  # a chunk ends between two characters
            if self.data[end : end + 1] and self.data[end] in _CONTINUATION:
                end -= 1
        chunk = self.data[self.position : end]
        if chunk.translate(None, _ALLOWED_ASCII):
            self._check(chunk)
        self.position += len(chunk)
        return chunk

    def lines(self, longest: int) -> Iterator[str]:
        """The lines with their ends; longer ones in parts. Raises InputError unless it is text."""
        while self.next_chunk():
            pass
        file = io.TextIOWrapper(io.BytesIO(self.data), "utf-8-sig", newline="")
        return iter(lambda: file.readline(longest), "")

    def error(self, place: int, message: str, hint: str) -> InputError:
        """The error about the byte at `place`, all before which is UTF-8."""
        before = self.data[self._start : place].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        return InputError([Problem(self.name, before.count(b"\n") + 1, column, message, hint)])

    def _check(self, chunk: bytes) -> None:
        try:
            text = chunk.decode()
        except UnicodeDecodeError as error:
            place = self.position + error.start
            byte = chunk[error.start]
            message = f"byte 0x{byte:02x} is not UTF-8: the file is binary, or in another encoding"
            raise self.error(place, message, self._how_to_save) from None
        if refused := re.search(_REFUSED, text):
            place = self.position + len(text[: refused.start()].encode())
            message = f"the character U+{ord(refused[0]):04X} is not allowed"
            hint = f"remove it; a file with many is binary or UTF-16: {self._how_to_save}"
            raise self.error(place, message, hint)


class FileKind(Enum):
    """A kind of file that people give in place of another: what it is, and what to do."""

    EMPTY = "is empty", "check that it was written"
    BINARY = "is binary, such as a spreadsheet or an archive", "save it as text in UTF-8, or as CSV"
    UTF_16 = "is in UTF-16", "save it as UTF-8; in PowerShell, with `Out-File -Encoding utf8`"
    HTML = "is an HTML or XML document", "download the file itself"
    SAVED = "is output of dkimctl, in JSON", "`ledger import` and --from read that of --format json"
    ZONE = "is a zone file", "write a list such as '- example.com', of the domains in From:"
    CONFIG = "is a config file", "give it to --config"
    MAIL = "is a mail", "check its signatures with `dkimctl verify`"
    SPECS = "is a spec file (YAML)", ""
    CSV = "is a table (CSV)", ""
    LIST = "is a plain list", ""

    def __init__(self, what: str, hint: str) -> None:
        self.what = what
        self.hint = hint


_LINES = 100
_LONG = 300  # characters, more than a line of these kinds needs
_MAGIC = (
    b"\x1f\x8b", b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"SQLite format 3\0", b"\xd0\xcf\x11\xe0",
)  # fmt: skip
_DOMAIN = r"(?i)(?=.{1,254}\Z)[^\W_](?:[^\W_]|-){0,62}(?:\.[^\W_](?:[^\W_]|-){0,62})+\.?"
# What a plain list begins with: a domain, a wildcard, an email address or a URL. A token is none.
_WORD = r"(?:\*\.)?[\w-]{1,63}(?:\.[\w-]{1,63})+\.?|\S+@\S+|\S+://\S+"
_YAML = r"-(?:\s|$)|.*:(?:\s|$)"
DOMAIN_HEADING = r'(?i)"?(?:sign(?:ing)?[ _-]?)?domain(?:[ _-]?name)?s?"?'
COMMENT = r"(?:^|\s)#.*"  # of a plain list
SEPARATOR = r'"?sep=([,;\t]?)"?\s*'  # the first line of a table, as Excel reads it
_ZONE = r"(?i)\$(?:ORIGIN|TTL|INCLUDE|GENERATE)\s|\S+\s.*\bIN\s+(?:SOA|NS|A|AAAA|MX|TXT|CNAME)\s"
_CONFIG = r"(?:default_profile|profiles|dns|rotation|notify):"
_MAIL = r"(?i)From |(?:From|To|Date|Subject|Received|Return-Path|DKIM-Signature|Message-ID|X-.+?): "
_SAVED = r'[{,]\s*"(?:items|outcome|setting_values)"\s*:'


def guess_kind(data: bytes) -> FileKind | None:
    """What `data` seems to be, from its first 64 KiB; None if it is nothing of the kind."""
    head = data[: (1 << 16)]  # bytes; all that is looked at
    if head.startswith(_MAGIC):
        return FileKind.BINARY
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return FileKind.UTF_16
    text = head.removeprefix(_MARK).decode("utf-8", "replace")
    lines = [line[:_LONG].strip() for line in text.splitlines()[: 10 * _LINES] if line.strip()]
    content = [line for line in lines[:_LINES] if not line.startswith("#")]
    if content and re.fullmatch(SEPARATOR, content[0]):
        content = content[1:]
    if not content:
        return FileKind.EMPTY
    first = content[0]
    if first.startswith("<"):
        return FileKind.HTML
    if first.startswith(("{", "[")):
        return FileKind.SAVED if re.search(_SAVED, " ".join(content)) else None
    if any(re.match(_ZONE, line) for line in content):
        return FileKind.ZONE
    if any(re.match(_CONFIG, line) for line in text.splitlines()[:_LINES]):
        return FileKind.CONFIG
    if re.match(_MAIL, first):
        return FileKind.MAIL
    if first.startswith(("- ", "domains:", "defaults:", "---")) or first == "-":
        return FileKind.SPECS
    if re.fullmatch(_WORD, re.sub(COMMENT, "", first).strip()):
        names = (re.sub(COMMENT, "", line) for line in content)
        return None if any(re.match(_YAML, name) for name in names) else FileKind.LIST
    # The first line has a heading, or a domain in one of as many cells as all others.
    rows = [[cell.strip() for cell in re.split(r"[,;\t]", line)] for line in content]
    is_table = any(re.fullmatch(DOMAIN_HEADING, cell) for cell in rows[0]) or (
        any(re.fullmatch(_DOMAIN, cell) for cell in rows[0])
        and len(rows[0]) > 1
        and len({len(row) for row in rows}) == 1
    )
    return FileKind.CSV if is_table else None
