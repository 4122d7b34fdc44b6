"""Validation of the entries of a registration request (interface 2.3), one by one.

The messages are part of the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Rejection:
    """An invalid entry, and what is wrong with it. Names as sent, if they are strings."""

    sign_domain: str | None
    selector: str | None
    message: str


def validate_entry(entry: Mapping[str, Any]) -> Entry | Rejection:
    """What a decoded JSON object of `domains` asks for, or everything that is wrong with it."""
    wrong = [name for name in entry if name in _RULES and not _RULES[name].is_valid(entry[name])]
    if "sign_domain" not in entry:
        wrong.append("sign_domain")
    if wrong:
        return _rejected(entry, "; ".join(_RULES[name].message for name in _RULES if name in wrong))
    if _fqdn_octets(entry) > _FQDN_OCTETS:
        return _rejected(
            entry, f"selector and sign_domain make a name of more than {_FQDN_OCTETS} octets"
        )
    return _to_entry(entry)


def _rejected(entry: Mapping[str, Any], message: str) -> Rejection:
    return Rejection(
        _if_string(entry.get("sign_domain")), _if_string(entry.get("selector")), message
    )


def _to_entry(entry: Mapping[str, Any]) -> Entry:
    selector = entry.get("selector")
    return Entry(
        sign_domain=entry["sign_domain"].lower(),
        selector=None if selector is None else selector.lower(),
        key_len=int(entry.get("key_len", _DEFAULT_KEY_LEN)),
        start_date=entry.get("start_date"),
        default=int(entry.get("default", 0)),
        enable=entry.get("enable", True),
    )


def _fqdn_octets(entry: Mapping[str, Any]) -> int:
    selector = entry.get("selector")
    octets = _GENERATED_SELECTOR_OCTETS if selector is None else len(selector)
    return octets + len("._domainkey.") + len(entry["sign_domain"])


def _if_string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is_domain(value: object) -> bool:
    return isinstance(value, str) and _DOMAIN.fullmatch(value) is not None


def _is_selector(value: object) -> bool:
    return isinstance(value, str) and _SELECTOR.fullmatch(value) is not None


def _is_key_len(value: object) -> bool:
    return value in KEY_LENGTHS  # as a number, whole or not: 1024.0 is 1024


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


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


class _Rule(NamedTuple):
    is_valid: Callable[[object], bool]
    message: str


_RULES: Mapping[str, _Rule] = {
    "sign_domain": _Rule(_is_domain, "sign_domain must be a domain name such as example.com"),
    "selector": _Rule(_is_selector, "selector must be one or more DNS labels joined by dots"),
    "key_len": _Rule(_is_key_len, "key_len must be the number 1024 or 2048"),
    "start_date": _Rule(
        _is_date_time,
        "start_date must be an ISO 8601 date-time with offset such as 2021-07-01T00:00+09:00",
    ),
    "default": _Rule(_is_whole_number, "default must be a whole number"),
    "enable": _Rule(_is_boolean, "enable must be true or false"),
}
