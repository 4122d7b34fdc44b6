"""From a file to text: of limited size, in UTF-8, and without control characters."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import IO

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.text.escaping import printable

MAX_BYTES = 64 * 1024 * 1024

_LINE_BREAK = r"\r\n|\r|\n"
# Control characters, and NEL, LS and PS: for YAML 1.1 these are line breaks, but editors do not
# count them.
_REFUSED = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def read_bytes(path: str, *, largest: int = MAX_BYTES) -> bytes:
    """The content of a file or pipe, or of standard input for `-`.

    Raises UsageError if it cannot be read, or has more than `largest` bytes.
    """
    if path == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed", hint="name a file instead of -")
        return _bounded(sys.stdin.buffer, "<stdin>", largest)
    try:
        if Path(path).is_dir():
            raise UsageError(f"{printable(path)} is a directory", hint="name a file in it")
        with Path(path).open("rb") as file:
            return _bounded(file, path, largest)
    except FileNotFoundError:
        raise UsageError(f"no such file: {printable(path)}", hint="check the path") from None
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


def decode(data: bytes, name: str) -> str:
    """UTF-8 text, with or without a byte order mark. Raises InputError."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _not_text(name, "", "the file is in UTF-16", "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Python removes the byte order mark from error.object.
        before = error.object[: error.start].decode("utf-8")
        byte = error.object[error.start]
        message = f"byte 0x{byte:02x} is not UTF-8: the file is binary, or in another encoding"
        raise _not_text(name, before, message, "save it as UTF-8 text") from None
    if refused := _REFUSED.search(text):
        message = f"the character U+{ord(refused[0]):04X} is not allowed"
        hint = "remove it; a file with many is binary or UTF-16: save it as UTF-8 text"
        raise _not_text(name, text[: refused.start()], message, hint)
    return text


def _not_text(name: str, before: str, message: str, hint: str) -> InputError:
    breaks = list(re.finditer(_LINE_BREAK, before))
    start = breaks[-1].end() if breaks else 0
    return InputError([Problem(name, len(breaks) + 1, len(before) - start + 1, message, hint)])
