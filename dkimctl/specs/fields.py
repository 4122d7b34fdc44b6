"""The fields of an entry (interface 2.3): from what is written to what is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from dkimctl.errors import UsageError
from dkimctl.specs.names import parse_domain, parse_selector
from dkimctl.strict_yaml.document import Document
from dkimctl.strict_yaml.nodes import Node, Written, is_plain, wrong
from dkimctl.text.wording import shown

Reader = Callable[[Written], object]

_DECIMAL = r"0|[1-9][0-9]{0,8}"
_START_DATE = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}"
    r"(?::(?P<seconds>[0-9]{2}))?(?:Z|[+-][0-9]{2}:[0-5][0-9])"
)
_DATE_AND_PERHAPS_TIME = r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2}:[0-9]{2}))?(?s:.*)"


def _sign_domain(scalar: Written) -> str:
    return parse_domain(scalar.value)


def _selector(scalar: Written) -> str:
    return parse_selector(scalar.value)


def _key_len(scalar: Written) -> int:
    if is_plain(scalar) and scalar.value in {"1024", "2048"}:
        return int(scalar.value)
    raise wrong(scalar, "1024 or 2048", "write 2048, or 1024 where the DNS takes no longer key")


def _default(scalar: Written) -> int:
    if is_plain(scalar) and re.fullmatch(_DECIMAL, scalar.value):
        return int(scalar.value)
    raise wrong(scalar, "a decimal number", "write it in decimal digits, such as 0")


def _enable(scalar: Written) -> bool:
    if is_plain(scalar) and scalar.value in {"true", "false"}:
        return scalar.value == "true"
    raise wrong(scalar, "true or false", "write true or false, in lower case")


def _start_date(scalar: Written) -> str:
    return parse_start_date(scalar.value)


@lru_cache(maxsize=64)  # the entries of a file share few dates
def parse_start_date(text: str) -> str:
    """An ISO 8601 date-time with offset as `YYYY-MM-DDThh:mm±hh:mm` (the sample of interface 2.3).

    Raises UsageError with a hint that says what to write.
    """
    found = re.fullmatch(_START_DATE, text)
    if not found:
        raise UsageError(f"{shown(text)} is no date-time with offset", hint=_suggestion(text))
    if found["seconds"] not in {None, "00"}:
        raise UsageError(f"{shown(text)} has seconds", hint=_suggestion(text))
    try:
        moment = datetime.fromisoformat(text)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{shown(text)} does not exist in the calendar", hint="correct the date, time or offset"
        ) from None
    return moment.isoformat(timespec="minutes")


# In the order of interface 2.3.
ENTRY: Mapping[str, Reader] = {
    "sign_domain": _sign_domain,
    "selector": _selector,
    "key_len": _key_len,
    "start_date": _start_date,
    "default": _default,
    "enable": _enable,
}
DEFAULTS: Mapping[str, Reader] = {
    key: reader for key, reader in ENTRY.items() if key not in {"sign_domain", "selector"}
}


def read_fields(
    document: Document, node: Node, what: str, readers: Mapping[str, Reader]
) -> dict[str, Any]:
    """The values of a mapping's known keys; None for one that is wrong, after its problem."""
    fields: dict[str, Any] = {}
    for key, value in document.pairs(node, what):
        reader = readers.get(key.value)
        if reader:
            fields[key.value] = document.value(value, key.value, reader)
        else:
            document.unknown_key(key, what, readers)
    return fields


def read_defaults(document: Document, node: Node) -> dict[str, Any]:
    """A `defaults:` mapping: any field but `sign_domain` and `selector`."""
    return read_fields(document, node, "defaults", DEFAULTS)


def _suggestion(text: str) -> str:
    found = re.fullmatch(_DATE_AND_PERHAPS_TIME, text)
    day, time = (found[1], found[2] or "00:00") if found else ("2026-12-01", "00:00")
    return f"write {day}T{time}+09:00, with the offset of your time zone"
