"""Keeps secrets that the service quotes out of every stream, log and file."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from urllib.parse import quote

from dkimctl.models import REDACTED, Secret
from dkimctl.text import utf8

_RUN = 12  # characters; a shorter part of a secret is of no use, and can occur by chance
_STEP, _WORD = 8, 4  # bytes: each run has a whole word of four at a multiple of eight
_MAX_PIECES = 20_000  # of a text; one with more is withheld, for they take time
# What encoders of JSON escape although they need not.
_ESCAPE = re.compile(rb"(?<!\\)\\(?:(/)|u00(2[013-9A-Fa-f]|[346][0-9A-Fa-f]|[57][0-9ABDabd]))")


class Redactor:
    """Finds runs of secrets, in any form and in any case: names in DNS have none."""

    def __init__(self) -> None:
        self._secrets, self._runs, self._words = set[Secret](), set[bytes](), set[int]()
        self._short = set[bytes]()  # the forms of secrets that are shorter than a run

    def add(self, secret: Secret, public: str = "") -> None:
        """Find `secret` from now on, but not its first part, `public`, alone."""
        if secret in self._secrets:
            return
        text, forms = secret.reveal(), _forms(secret.reveal())
        self._runs |= _pieces(forms, _RUN) - _pieces(_forms(public), _RUN)
        self._words |= {int.from_bytes(word, sys.byteorder) for word in _pieces(forms, _WORD)}
        if len(text) < _RUN:  # a form of less than four bytes would occur by chance
            self._short |= {utf8(text.lower()), *(form for form in forms if len(form) >= _WORD)}
        self._secrets.add(secret)

    def redact(self, text: bytes, exempt: bytes = b"") -> bytes:
        """`text` with `***` for every run, except those that `exempt` contains.

        JSON that escapes more than it must hides no run, and no escape is cut in half.
        """
        plain = _ESCAPE.sub(lambda e: e[1] or bytes.fromhex(e[2].decode()), text, _MAX_PIECES)
        lower, shown, done, end = plain.lower(), list[bytes](), 0, 0
        words = memoryview(lower)[: len(lower) // _WORD * _WORD].cast("I")[:: _STEP // _WORD]
        for at in (n * _STEP for n, word in enumerate(words) if word in self._words):
            near = range(max(end, at - _STEP + 1), at + 1)
            if (start := next((n for n in near if lower[n : n + _RUN] in self._runs), -1)) < 0:
                continue
            end = start + _RUN
            while lower[end - _RUN + 1 : end + 1] in self._runs:
                end += 1
            if lower[start:end] not in exempt.lower():
                before = plain[done:start].rstrip(b"\\")
                shown += [before, REDACTED.encode()] if before or not shown else []
                done = end
            if len(shown) > _MAX_PIECES:
                return REDACTED.encode()
        return b"".join([*shown, plain[done:]]) if shown else text

    def has_short_secret(self, text: str) -> bool:
        """Whether `text` contains a whole secret that is too short for `redact`, in any form."""
        return any(form in utf8(text.lower()) for form in [*self._short])


def _pieces(forms: set[bytes], length: int) -> set[bytes]:
    return {form[i : i + length] for form in forms for i in range(len(form) - length + 1)}


def _forms(text: str) -> set[bytes]:
    """`text` as it is and in JSON, in base64, hex and percent-encoding; all in lower case."""
    data = utf8(text)
    # In base64, the first characters depend on what comes before: 0, 1 or 2 bytes of a group.
    codes = [b64encode(bytes(n) + data).rstrip(b"=")[n + (n > 0) :] for n in range(3)]
    codes += [code.translate(bytes.maketrans(b"+/", b"-_")) for code in codes]
    others = [quote(form, safe) for form in (data, *codes) for safe in ("", "/")]
    others += [data.hex(), *(json.dumps(text, ensure_ascii=plain)[1:-1] for plain in (True, False))]
    return {form.lower() for form in (data, *codes, *map(utf8, others))}
