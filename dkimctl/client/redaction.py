"""Keeps secrets that the service quotes out of every stream, log and file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeAlias

from dkimctl.client.secret_forms import (
    ESCAPE,
    JSON_ESCAPE,
    forms_of,
    short_forms_of,
    unescape,
    unescaped,
)
from dkimctl.models.secret import REDACTED, Secret

_RUN = 12  # characters; a shorter part of a secret is of no use, and can occur by chance
# Text is probed at every eighth byte: the four bytes there belong to any run around them.
_STEP, _WORD = 8, 4
_BLOCK = 1 << 18  # words that are read at once
_MAX_SPANS = 10_000  # in a text; one with more is withheld, for they take time
_NO_ESCAPE = (sys.maxsize, sys.maxsize, 0)
_CUT_ESCAPE = re.compile(rb"\\u[0-9A-Fa-f]{0,3}\Z")

_Span: TypeAlias = tuple[int, int]  # the first byte, and the one after the last


class Redactor:
    """Finds what a text quotes of secrets: runs of 12 or more characters, in any of their forms.

    In upper or lower case, since names in DNS have none. Immutable, so threads can share one.
    """

    def __init__(self) -> None:
        self._secrets: frozenset[Secret] = frozenset()
        self._runs: frozenset[bytes] = frozenset()  # all of 12 bytes
        self._words: frozenset[int] = frozenset()  # all of 4 bytes
        self._short: frozenset[bytes] = frozenset()  # the forms of short secrets

    def including(self, secret: Secret, public: str = "") -> Redactor:
        """One that finds `secret` as well, but not its first part, `public`, alone."""
        text = secret.reveal()
        forms = {form for form in forms_of(text) if len(form) >= _RUN}
        words = (int.from_bytes(word, sys.byteorder) for word in _pieces(forms, _WORD))
        other = Redactor()
        other._secrets = self._secrets | {secret}
        other._runs = self._runs | (_pieces(forms, _RUN) - _pieces(forms_of(public), _RUN))
        other._words = self._words.union(words)
        other._short = self._short | (short_forms_of(text) if len(text) < _RUN else set())
        return other

    def __contains__(self, secret: Secret) -> bool:
        return secret in self._secrets

    def redact(self, text: bytes, exempt: bytes = b"") -> bytes:
        """`text` with `***` for every run, except those that `exempt` contains.

        Line breaks and the escapes of JSON and URLs do not hide a run, and none is cut in half.
        """
        spans = [_widened(text, *span) for span in self._find(text, exempt)]
        plain = unescape(text, JSON_ESCAPE)
        if plain != text:
            spans += _locate(text, JSON_ESCAPE, self._find(plain, exempt))
        # Percent-encoding is itself a form that is searched for, so it is decoded last.
        if b"%" in plain:
            decoded = self._find(unescape(plain, ESCAPE), exempt)
            spans += _locate(text, JSON_ESCAPE, _locate(plain, ESCAPE, decoded))
        if len(spans) > _MAX_SPANS:
            return REDACTED.encode()
        return _replace(text, spans) if spans else text

    def has_short_secret(self, text: str) -> bool:
        """Whether `text` contains a whole secret that is too short for `redact`, in any form."""
        data = text.encode("utf-8", "surrogatepass")
        texts = (data.lower(), unescape(data, ESCAPE).lower())
        return any(form in one for form in self._short for one in texts)

    def _find(self, text: bytes, exempt: bytes) -> Iterator[_Span]:
        """The longest spans whose bytes all belong to runs, in order."""
        text, exempt = text.lower(), exempt.lower()
        spans = (span for span in self._spans(text) if text[slice(*span)] not in exempt)
        return islice(spans, _MAX_SPANS + 1)

    def _spans(self, text: bytes) -> Iterator[_Span]:
        end = 0
        for position in self._probe(text):
            for start in range(max(end, position - _STEP + 1), position + 1):
                if text[start : start + _RUN] in self._runs:
                    end = self._end_of(text, start)
                    yield start, end
                    break

    def _probe(self, text: bytes) -> Iterator[int]:
        """Each position at which a run may be: every run has one among its first eight bytes."""
        all_words = memoryview(text)[: len(text) // _WORD * _WORD].cast("I")
        for block in range(0, len(all_words), _BLOCK):
            words = all_words[block : block + _BLOCK : _STEP // _WORD].tolist()
            if not self._words.isdisjoint(words):  # seldom
                positions = range(block * _WORD, len(text), _STEP)
                pairs = zip(positions, words, strict=False)
                yield from (position for position, word in pairs if word in self._words)

    def _end_of(self, text: bytes, start: int) -> int:
        """Where the runs end of which the first is at `start`, without a gap."""
        while True:
            for following in range(start + _RUN, start, -1):
                if text[following : following + _RUN] in self._runs:
                    start = following
                    break
            else:
                return start + _RUN


def _pieces(forms: Iterable[bytes], length: int) -> set[bytes]:
    return {form[i : i + length] for form in forms for i in range(len(form) - length + 1)}


def _locate(text: bytes, escape: re.Pattern[bytes], spans: Iterable[_Span]) -> Iterator[_Span]:
    """Where `spans` of the unescaped `text`, in order, are in `text`."""
    ends = chain.from_iterable((start, end - 1) for start, end in spans)
    sources = _sources(text, escape, ends)
    return ((start, end) for (start, _), (_, end) in zip(sources, sources, strict=True))


def _sources(text: bytes, escape: re.Pattern[bytes], positions: Iterable[int]) -> Iterator[_Span]:
    """What stands in `text` for the bytes at `positions`, in order, of the unescaped text."""
    escapes = ((*match.span(), len(unescaped(match))) for match in escape.finditer(text))
    start, end, length = next(escapes, _NO_ESCAPE)
    shift = 0  # how much longer the text is so far than the unescaped text
    for position in positions:
        while start - shift + length <= position:
            shift += end - start - length
            start, end, length = next(escapes, _NO_ESCAPE)
        if start - shift <= position:
            yield start, end
        else:
            yield position + shift, position + shift + 1


def _widened(text: bytes, start: int, end: int) -> _Span:
    """The span with the whole of a JSON escape that begins before it, or ends after it."""
    if cut := _CUT_ESCAPE.search(text, max(0, start - 5), start):
        start = cut.start()
    while text[start - 1 : start] == b"\\":
        start -= 1
    backslashes = end
    while text[backslashes - 1 : backslashes] == b"\\":
        backslashes -= 1
    while backslashes < end and text[end : end + 1] == b"\\":
        end += 1
    end += (end - backslashes) % 2
    return start, end


def _replace(text: bytes, spans: Iterable[_Span]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not pieces:
            pieces += (text[done:start], REDACTED.encode())
        done = max(done, end)
    return b"".join([*pieces, text[done:]])
