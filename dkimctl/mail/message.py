"""A mail, split into header fields and body (RFC 5322 section 2)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.text.escaping import printable

_FIELD = rb"([!-9;-~]+)[ \t]*:"  # compiled when it is used
_MBOX_LINE = b"From "
_SIGNATURE = b"dkim-signature"
_HINT = 'save the whole mail with its header, as "Show original" or "Save as .eml" does'


class Field(NamedTuple):
    """A header field; `value` is what follows the colon, with all line ends, as CRLF."""

    name: bytes
    value: bytes

    @property
    def key(self) -> bytes:
        """The name in lower case: names ignore case."""
        return self.name.lower()


class Message:
    """A mail whose lines end with CRLF, as they were when it was signed."""

    def __init__(self, fields: Sequence[Field], body: bytes) -> None:
        self.fields = fields
        self.body = body

    @property
    def signatures(self) -> list[Field]:
        """The DKIM-Signature fields, from the top."""
        return self.all(_SIGNATURE)

    def all(self, key: bytes) -> list[Field]:
        """The fields with this name, which is in lower case."""
        return [field for field in self.fields if field.key == key]

    @cached_property
    def squeezed_body(self) -> bytes:
        """The body with each run of spaces and tabs as one space, and none at the ends of lines.

        It has the same relaxed form (RFC 6376 section 3.4.4). dkimpy takes time with the square
        of the length of a run.
        """
        return re.sub(rb"[\t ]+", b" ", self.body).replace(b" \r\n", b"\r\n")


def read_message(data: bytes, file: str) -> Message:
    """The mail in `data`, with any line ends; the first line may be that of an mbox file.

    Raises UsageError, which names the file, if it is no mail.
    """
    lines = _with_crlf(data.removeprefix(codecs.BOM_UTF8))
    header, _, body = lines.partition(b"\r\n\r\n")
    if lines.startswith(b"\r\n"):
        header, body = b"", lines[2:]
    fields = list(_fields(header.removesuffix(b"\r\n"), file))
    if not fields:
        what = "is empty" if not data.strip() else "is not a mail: it begins with an empty line"
        raise UsageError(f"{printable(file)} {what}", hint=_HINT)
    return Message(fields, body)


def _with_crlf(data: bytes) -> bytes:
    if b"\n" not in data:  # as old Macs ended lines; else a bare CR is part of the text
        data = data.replace(b"\r", b"\n")
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _fields(header: bytes, file: str) -> Iterator[Field]:
    """The fields of a header without its last line end. Raises UsageError."""
    name, lines = b"", list[bytes]()
    for number, line in enumerate(header.split(b"\r\n") if header else ()):
        is_folded = line[:1] in (b" ", b"\t")
        if is_folded and name:
            lines.append(line)
            continue
        if name:
            yield Field(name, b"".join(part + b"\r\n" for part in lines))
        if number == 0 and line.startswith(_MBOX_LINE):
            continue
        match = None if is_folded else re.match(_FIELD, line)
        if match is None:
            problem = f"line {number + 1} is not a header field"
            raise UsageError(f"{printable(file)} is not a mail: {problem}", hint=_HINT)
        name, lines = match[1], [line[match.end() :]]
    if name:
        yield Field(name, b"".join(part + b"\r\n" for part in lines))
