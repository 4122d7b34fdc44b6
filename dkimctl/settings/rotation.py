"""When `rotate run` replaces keys: `rotation` in the config file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.settings.reading import LOGIN_HINT, read_fields, scalar_readers
from dkimctl.settings.values import Check, integer
from dkimctl.text.durations import parse_duration

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node

_MAX_LIMIT = 1_000_000  # more than anyone has domains
_BARE_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_MIN_GRACE = timedelta(days=5)  # for which mail servers try to deliver (RFC 5321 section 4.5.4.1)


class RotationSettings(NamedTuple):
    """A key gets a successor at `max_age`, which starts `lead` later.

    The old record is removed when the successor has been signing, and published, for `grace`. At
    most `limit` successors are registered a day (UTC).
    """

    max_age: timedelta = timedelta(days=180)
    lead: timedelta = timedelta(days=7)
    grace: timedelta = timedelta(days=14)
    limit: int = 50


def read_rotation(document: Document, node: Node) -> RotationSettings:
    """Read `rotation`, and report its problems."""
    readers = scalar_readers(document, _CHECKS)
    values, keys = read_fields(document, node, "rotation", readers, secret_hint=LOGIN_HINT)
    settings = RotationSettings(**values)
    if settings.lead >= settings.max_age:
        hint = "write a lead of some days, such as 7d, and a max_age of some months, such as 180d"
        place = keys.get("lead") or keys["max_age"]
        document.problem(place, "lead is not shorter than max_age", hint)
    return settings


def _duration(text: str) -> timedelta:
    if re.fullmatch(_BARE_NUMBER, text) and text.strip("0."):  # elsewhere, these are seconds
        raise UsageError("a number without a unit", hint=f"write {text}d, if you mean days")
    return timedelta(seconds=parse_duration(text))


def _grace(text: str) -> timedelta:
    grace = _duration(text)
    if grace < _MIN_GRACE:
        raise UsageError(
            "shorter than 5 days, for which signed mail may be on its way",
            hint="write 5d or more; 14d also leaves time to notice that signing has not moved",
        )
    return grace


_CHECKS: Mapping[str, Check] = {
    "max_age": _duration,
    "lead": _duration,
    "grace": _grace,
    "limit": integer(1, _MAX_LIMIT),
}
