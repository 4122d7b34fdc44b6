"""The entries of a registration request (interface 2.3): judged one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SELECTOR = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DOMAIN = re.compile(
    rf"(?:{_LABEL}\.)+(?![0-9]+$){_LABEL}"
)  # a last label of digits: an IP address
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9][+-](?:[01][0-9]|2[0-3]):[0-5][0-9]"
)
_KEY_LENGTHS = (1024, 2048)
_DEFAULT_KEY_LEN = 1024
_FQDN_OCTETS = 253
_GENERATED_SELECTOR_OCTETS = 9
_INTEGER_LIMIT = 2**63  # of the database


@dataclass(frozen=True, slots=True)
class Entry:
    """One valid entry; names in lower case. None: not stated, the service decides."""

    sign_domain: str
    selector: str | None
    key_len: int
    start_date: str | None
    default: int
    enable: bool


@dataclass(frozen=True, slots=True)
class Rejection:
    """One entry that is not valid, with what is wrong. Names as sent, if they are strings."""

    sign_domain: str | None
    selector: str | None
    message: str


def judge(entry: Mapping[str, Any]) -> Entry | Rejection:
    """What one decoded JSON object of `domains` asks for, or everything that is wrong with it."""
    stated = {"sign_domain": None, **entry}
    problems = [
        message
        for name, (is_valid, message) in _RULES.items()
        if name in stated and not is_valid(stated[name])
    ]
    if not problems and _fqdn_octets(entry) > _FQDN_OCTETS:
        problems = [f"selector and sign_domain make a name of more than {_FQDN_OCTETS} octets"]
    if problems:
        return Rejection(
            _if_string(entry.get("sign_domain")),
            _if_string(entry.get("selector")),
            "; ".join(problems),
        )
    return _accepted(entry)


def _accepted(entry: Mapping[str, Any]) -> Entry:
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
    selector = entry.get("selector", "s" * _GENERATED_SELECTOR_OCTETS)
    return len(f"{selector}._domainkey.{entry['sign_domain']}")


def _if_string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is_domain(value: object) -> bool:
    return isinstance(value, str) and _DOMAIN.fullmatch(value) is not None


def _is_selector(value: object) -> bool:
    return isinstance(value, str) and _SELECTOR.fullmatch(value) is not None


def _is_key_len(value: object) -> bool:
    return _is_whole_number(value) and value in _KEY_LENGTHS


def _is_whole_number(value: object) -> bool:
    """Whether this is an integral JSON number (1.0 is 1) in the range that can be stored."""
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


_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "sign_domain": (_is_domain, "sign_domain must be a domain name such as example.com"),
    "selector": (_is_selector, "selector must be one or more DNS labels joined by dots"),
    "key_len": (_is_key_len, "key_len must be the number 1024 or 2048"),
    "start_date": (
        _is_date_time,
        "start_date must be an ISO 8601 date-time with offset such as 2021-07-01T00:00+09:00",
    ),
    "default": (_is_whole_number, "default must be a whole number"),
    "enable": (_is_boolean, "enable must be true or false"),
}
