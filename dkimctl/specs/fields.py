"""The fields of an entry (interface 2.3, and `replaces`): from their text to their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from dkimctl.dkim import is_name
from dkimctl.errors import UsageError
from dkimctl.specs.names import is_ordinary, parse_domain, parse_selector
from dkimctl.strict_yaml.document import Document
from dkimctl.strict_yaml.nodes import Converter, Node, invalid_value
from dkimctl.text.escaping import quoted

_DECIMAL = r"0|[1-9][0-9]{0,8}"
_START_DATE = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}"
    r"(?::(?P<seconds>[0-9]{2}))?(?:Z|[+-][0-9]{2}:[0-5][0-9])"
)
_DATE_AND_PERHAPS_TIME = r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2}:[0-9]{2}))?"
_LONG_NAME = 254  # characters, more than any domain has
_LONG = 64  # characters, more than any date has

# The entries of a file have few different values, except for their domains.
_cached = lru_cache(maxsize=64)


def _sign_domain(text: str, _is_plain: bool) -> str:
    return parse_domain(text)


@_cached
def _selector(text: str, _is_plain: bool) -> str:
    return parse_selector(text)


@_cached
def _key_len(text: str, is_plain: bool) -> int:
    if is_plain and text in {"1024", "2048"}:
        return int(text)
    hint = "write 2048, or 1024 if your DNS provider does not accept longer keys"
    raise invalid_value(text, is_plain, "1024 or 2048", hint)


@_cached
def _start_date(text: str, _is_plain: bool) -> str:
    return parse_start_date(text)


@_cached
def _default(text: str, is_plain: bool) -> int:
    if is_plain and re.fullmatch(_DECIMAL, text):
        return int(text)
    raise invalid_value(text, is_plain, "a decimal number", "write decimal digits, such as 0")


@_cached
def _enable(text: str, is_plain: bool) -> bool:
    if is_plain and text in {"true", "false"}:
        return text == "true"
    raise invalid_value(text, is_plain, "true or false", "write true or false, in lower case")


@_cached
def _replaces(text: str, _is_plain: bool) -> str:
    # A selector that the service chose may contain underscores, which `is_name` allows.
    is_selector = is_name(text) and "_domainkey" not in text.lower()
    return text if is_selector else parse_selector(text)


# In the order of interface 2.3; `replaces` is ours.
ENTRY_FIELDS: Mapping[str, Converter[object]] = {
    "sign_domain": _sign_domain,
    "selector": _selector,
    "key_len": _key_len,
    "start_date": _start_date,
    "default": _default,
    "enable": _enable,
    "replaces": _replaces,
}
_OF_ONE_KEY = frozenset(("sign_domain", "selector", "replaces"))
_DEFAULTS: Mapping[str, Converter[object]] = {
    key: convert for key, convert in ENTRY_FIELDS.items() if key not in _OF_ONE_KEY
}


def read_entry(document: Document, node: Node) -> dict[str, Any]:
    """The fields of an entry: a mapping, or only a signing domain.

    A value that is wrong is None, and its problem is reported.
    """
    if document.is_mapping(node):
        return _read_mapping(document, node, "an entry", ENTRY_FIELDS)
    return {"sign_domain": document.value(node, "an entry", _sign_domain)}


def read_defaults(document: Document, node: Node) -> dict[str, Any]:
    """A `defaults:` mapping: any field except `sign_domain`, `selector` and `replaces`."""
    return _read_mapping(document, node, "defaults", _DEFAULTS)


def parse_start_date(text: str) -> str:
    """An ISO 8601 date-time with offset as `YYYY-MM-DDThh:mm±hh:mm` (the sample of interface 2.3).

    Raises UsageError with a hint that says what to write.
    """
    match = re.fullmatch(_START_DATE, text[:_LONG])
    if not match:
        raise UsageError(
            f"{quoted(text)} is not a date and time with an offset", hint=_correction(text)
        )
    if match["seconds"] not in {None, "00"}:
        raise UsageError(
            f"{quoted(text)} has seconds, which are not supported", hint=_correction(text)
        )
    try:
        time = datetime.fromisoformat(text)
        time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{quoted(text)} is not a date in the calendar", hint="correct the date, time or offset"
        ) from None
    return time.isoformat(timespec="minutes")


def _read_mapping(
    document: Document, node: Node, what: str, fields: Mapping[str, Converter[object]]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    read_value = document.value
    for key, value in document.pairs(node, what):
        name = key.value
        if convert := fields.get(name):
            values[name] = read_value(value, name, convert)
        elif "." in name and is_ordinary(name[:_LONG_NAME].lower()):
            message = f"{what} has no key {quoted(name)}: it is a domain"
            document.problem(
                key, message, "write 'sign_domain: example.com' above its other fields"
            )
        else:
            document.unknown_key(key, what, fields)
    return values


def _correction(text: str) -> str:
    match = re.match(_DATE_AND_PERHAPS_TIME, text)
    day, time = (match[1], match[2] or "00:00") if match else ("2026-12-01", "00:00")
    return f"write {day}T{time}+09:00, with the offset of your time zone"
