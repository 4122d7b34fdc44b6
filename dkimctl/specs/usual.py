"""The usual list of entries, read at once.

Each entry is a name or a mapping, in words and without YAML's finer points: a pattern reads it
in less time than the parser takes for its events. Whatever is written otherwise, or is wrong,
is left to the parser, which tells where and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.specs.fields import ENTRY
from dkimctl.specs.names import MAX_NAME, key_name_length, parse_domain

# What YAML reads as itself, in quotes or not, in {} or not.
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._+-]|:(?=[A-Za-z0-9]))*"
_NULLS = frozenset(("null", "Null", "NULL"))
_VALUE = rf"(?:{_WORD}|'{_WORD}'|\"{_WORD}\")"
_PAIR = rf"[a-z_]+: {_VALUE}"
_NOTHING = r"(?: *+(?:#.*+)?+\n)*+"  # blank lines and comments, however many
_START = rf"(?:\A(?:---\n)?|^domains: *(?:#.*)?\n){_NOTHING}(?P<list> *)- "
_ENTRY = (
    rf"{_NOTHING}<indent>- (?:(?P<domain>{_VALUE})|"
    rf"(?P<pairs>\{{{_PAIR}(?:, {_PAIR})*\}}|{_PAIR}(?:\n<indent>  {_PAIR})*))(?:\n|\Z)"
)
_QUOTES = "'\""
_FIELD = re.compile(rf"([a-z_]+): ({_VALUE})")

Fields = dict[str, Any]


class _Unusual(Exception):
    """It is for the parser."""


class _Written(NamedTuple):
    value: str
    implicit: tuple[bool, bool]


def take_usual(text: str) -> tuple[str, list[Fields]]:
    """Take the list of entries out of a spec file, if all of it is usual and right.

    Gives the text with an empty list in its place, and the fields of the entries, as
    `read_fields` does; otherwise the text as it is, and none.
    """
    lines = text.replace("\r\n", "\n")
    start = re.search(_START, lines, re.MULTILINE)
    if start is None or "\r" in lines:
        return text, []
    try:
        entries = list(_entries(lines, start.start("list"), start["list"]))
        _check_names(
            [entry["sign_domain"] for entry in entries],
            [entry.get("selector", "") for entry in entries],
        )
    except (_Unusual, UsageError):
        return text, []
    return f"{lines[: start.start('list')]} []\n", entries


def _entries(lines: str, position: int, indent: str) -> Iterator[Fields]:
    """The fields of each entry from there on to the end."""
    match = re.compile(_ENTRY.replace("<indent>", indent)).match
    while entry := match(lines, position):
        domain, pairs = entry.groups()
        yield {"sign_domain": _domain(domain)} if domain else _fields(pairs)
        position = entry.end()
    if re.compile(_NOTHING).fullmatch(lines, position) is None:
        raise _Unusual


def _fields(pairs: str) -> Fields:
    found = _FIELD.findall(pairs)
    fields = {key: _value(key, written) for key, written in found if key != "sign_domain"}
    domains = [_domain(written) for key, written in found if key == "sign_domain"]
    if len(domains) != 1 or len(fields) + 1 < len(found):
        raise _Unusual
    return {"sign_domain": domains[0], **fields}


def _domain(written: str) -> str:
    return parse_domain(written.strip(_QUOTES))


@lru_cache(maxsize=256)  # the entries of a file share few values
def _value(key: str, written: str) -> object:
    if key not in ENTRY or written in _NULLS:
        raise _Unusual
    is_plain = written[0] not in _QUOTES
    return ENTRY[key](_Written(written.strip(_QUOTES), (is_plain, not is_plain)))


def _check_names(domains: Sequence[str], selectors: Sequence[str]) -> None:
    """See that each name is there once, and can be one in DNS."""
    if max(map(key_name_length, domains, selectors), default=0) > MAX_NAME:
        raise _Unusual
    names = set(zip(domains, map(str.lower, selectors), strict=True))
    if len(names) < len(domains):
        raise _Unusual
    chosen = {domain for domain, selector in names if not selector}
    if not chosen.isdisjoint(domain for domain, selector in names if selector):
        raise _Unusual
