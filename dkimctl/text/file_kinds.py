"""The kind of a file, guessed from its beginning. Nothing of it is ever quoted."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from enum import Enum

_HEAD = 1 << 16  # bytes; all that is looked at
_LINES = 100
_LONG = 300  # characters, more than a line of these kinds needs

_UTF_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MAGIC = (
    b"\x1f\x8b", b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"SQLite format 3\0", b"\xd0\xcf\x11\xe0",
)  # fmt: skip

# Compiled when they are used: only a file that is wrong is looked at.
_DOMAIN = r"(?i)(?=.{1,254}\Z)[^\W_](?:[^\W_]|-){0,62}(?:\.[^\W_](?:[^\W_]|-){0,62})+\.?"
_ADDRESS = r"[^\s@:,;]{1,64}@[^\s@]{1,253}"
_URL = r"(?i)https?://\S+"
_NO_SPACE = r"(?:-|[-*\u2022\u2013\u2014]\s+)(?![-\s]).*"  # `-example.com`, or another bullet
_HEADER = r'(?i)"?(?:sign_?)?domain(?:[ _-]?name)?s?"?'
_ZONE = r"(?i)\$(?:ORIGIN|TTL|INCLUDE|GENERATE)\s|\S+\s.*\bIN\s+(?:SOA|NS|A|AAAA|MX|TXT|CNAME)\s"
_SAVED_LINE = r'\s*\{.*"(?:outcome|setting_values)"\s*:'
_SAVED = r'\s*\{\s*"items"\s*:'
_DELIMITERS = ",;\t"


class FileKind(Enum):
    """A kind of file; its value names it in a message."""

    EMPTY = "is empty"
    BINARY = "is binary, such as a spreadsheet or an archive"
    UTF_16 = "is in UTF-16"
    HTML = "is an HTML or XML document"
    SAVED = "is a saved result, in JSON"
    SAVED_LINES = "is the output of --format jsonl"
    JSON_LINES = "has one JSON object a line"
    ZONE = "is a zone file"
    CSV = "is a table (CSV)"
    DOMAINS = "is a plain list of domains"
    DOMAINS_IN_A_LINE = "has several domains in a line"
    ADDRESSES = "is a list of email addresses"
    URLS = "is a list of URLs"
    NO_SPACE = "has list items without '- '"
    SPECS = "is a spec file (YAML)"


def guess_kind(data: bytes) -> FileKind | None:
    """What `data` seems to be, from its first 64 KiB; None if it is nothing of the kind."""
    head = data[:_HEAD]
    if head.startswith(_MAGIC):
        return FileKind.BINARY
    if head.startswith(tuple(mark for mark, _ in _UTF_16)):
        return FileKind.UTF_16
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    lines = [line[:_LONG] for line in text.splitlines()[: 10 * _LINES] if line.strip()]
    return _of_lines(lines[:_LINES]) if lines else FileKind.EMPTY


def has_mark(data: bytes) -> bool:
    """Whether it begins with a byte order mark of UTF-8, which tools pass on."""
    return data.startswith(codecs.BOM_UTF8)


def header(data: bytes) -> tuple[str, Sequence[str]]:
    """The delimiter of a table, and the words of its first line."""
    line = data[:_HEAD].removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").lstrip()
    first = line.partition("\n")[0][:_LONG]
    delimiter = max(_DELIMITERS, key=first.count)
    return delimiter, [word.strip().strip('"') for word in first.split(delimiter)]


def is_domain(word: str) -> bool:
    """Whether `word` looks like a domain name of two labels or more."""
    return re.fullmatch(_DOMAIN, word[:_LONG]) is not None


def is_domain_column(word: str) -> bool:
    """Whether the column of a table that is called `word` has domains."""
    return re.fullmatch(_HEADER, word) is not None


def _of_lines(lines: Sequence[str]) -> FileKind | None:
    first = lines[0].lstrip()
    if first.startswith("<"):
        return FileKind.HTML
    if first.startswith(("{", "[")):
        return _of_json(lines)
    if any(re.match(_ZONE, line) for line in lines):
        return FileKind.ZONE
    content = [line.strip() for line in lines if not line.lstrip().startswith("#")]
    if not content:
        return FileKind.EMPTY
    if content[0].startswith(("- ", "domains:", "defaults:", "---")) or content[0] == "-":
        return FileKind.SPECS
    return next(_of_content(content), None)


def _of_json(lines: Sequence[str]) -> FileKind | None:
    if re.match(_SAVED, " ".join(lines[:2])):
        return FileKind.SAVED
    if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines[:2]):
        is_saved = re.match(_SAVED_LINE, lines[0])
        return FileKind.SAVED_LINES if is_saved else FileKind.JSON_LINES
    return FileKind.SAVED_LINES if re.match(_SAVED_LINE, lines[0]) else None


def _of_content(lines: Sequence[str]) -> Iterator[FileKind]:
    for pattern, kind in (
        (_DOMAIN, FileKind.DOMAINS),
        (_ADDRESS, FileKind.ADDRESSES),
        (_URL, FileKind.URLS),
        (_NO_SPACE, FileKind.NO_SPACE),
    ):
        if all(re.fullmatch(pattern, line) for line in lines):
            yield kind
    if _is_table(lines):
        yield FileKind.CSV
    words = re.split(r"[\s,;]+", " ".join(lines))
    if all(re.fullmatch(_DOMAIN, word) for word in words if word):
        yield FileKind.DOMAINS_IN_A_LINE


def _is_table(lines: Sequence[str]) -> bool:
    """Whether the lines have equally many cells, and the first has a heading, or the last a name.

    A single line needs a heading: without one, it is a list of domains.
    """
    delimiter, words = header(lines[0].encode())
    if any(map(is_domain_column, words)):
        return True
    counts = {line.count(delimiter) for line in lines}
    has_name = any(re.fullmatch(_DOMAIN, word) for word in words)
    others_are_domains = all(re.fullmatch(_DOMAIN, word) for word in words if word)
    return (
        len(lines) > 1
        and counts == {len(words) - 1}
        and len(words) > 1
        and (has_name and not others_are_domains)
    )
