"""Validation of the entries of a registration request (interface 2.3), one by one.

The messages are part of the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from dkimctl.service.key_pairs import KEY_LENGTHS

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SELECTOR = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Without names whose last label is all digits: those are IP addresses.
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+(?![0-9]+$){_LABEL}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9][+-](?:[01][0-9]|2[0-3]):[0-5][0-9]"
)
_DEFAULT_KEY_LEN = 1024
_FQDN_OCTETS = 253
_GENERATED_SELECTOR_OCTETS = 9
_INTEGER_LIMIT = 2**63  # of SQLite


class Entry(NamedTuple):
    """A valid entry; names in lower case. None: not given, the service decides."""

    sign_domain: str
    selector: str | None
    key_len: int
    start_date: str | None
    default: int
    enable: bool


class Rejection(NamedTuple):
    """An invalid entry, and what is wrong with it. Names as sent, if they are strings."""

    sign_domain: str | None
    selector: str | None
    message: str


def validate_entry(entry: Mapping[str, Any]) -> Entry | Rejection:
    """What a decoded JSON object of `domains` asks for, or everything that is wrong with it."""
    message = "; ".join(
        text
        for name, (is_valid, text) in _RULES.items()
        if (not is_valid(entry[name]) if name in entry else name == "sign_domain")
    )
    selector = entry.get("selector")
    if not message:
        label = _GENERATED_SELECTOR_OCTETS if selector is None else len(selector)
        if label + len("._domainkey.") + len(entry["sign_domain"]) > _FQDN_OCTETS:
            message = f"selector and sign_domain make a name of more than {_FQDN_OCTETS} octets"
    if message:
        domain = entry.get("sign_domain")
        return Rejection(
            domain if isinstance(domain, str) else None,
            selector if isinstance(selector, str) else None,
            message,
        )
    return Entry(
        sign_domain=entry["sign_domain"].lower(),
        selector=None if selector is None else selector.lower(),
        key_len=int(entry.get("key_len", _DEFAULT_KEY_LEN)),
        start_date=entry.get("start_date"),
        default=int(entry.get("default", 0)),
        enable=entry.get("enable", True),
    )


def _is_whole_number(value: object) -> bool:
    """Whether this is an integral JSON number (1.0 is 1) that the database can store."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _INTEGER_LIMIT and value == int(value)


def _is_date_time(value: object) -> bool:
    if not isinstance(value, str) or not _DATE_TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_like(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


# What each field must be, and the message if it is not.
_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sign_domain": (_is_like(_DOMAIN), "sign_domain must be a domain name such as example.com"),
    "selector": (_is_like(_SELECTOR), "selector must be one or more DNS labels joined by dots"),
    # As a number, whole or not: 1024.0 is 1024.
    "key_len": (lambda value: value in KEY_LENGTHS, "key_len must be the number 1024 or 2048"),
    "start_date": (
        _is_date_time,
        "start_date must be an ISO 8601 date-time with offset such as 2021-07-01T00:00+09:00",
    ),
    "default": (_is_whole_number, "default must be a whole number"),
    "enable": (lambda value: isinstance(value, bool), "enable must be true or false"),
}
