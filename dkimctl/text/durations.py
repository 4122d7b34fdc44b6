"""Durations, as people write and read them."""

from __future__ import annotations

import math
import re

from dkimctl.errors import UsageError

DAY = 86400.0  # seconds

_DURATION = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw]?)"  # compiled when it is first used
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}


def parse_duration(text: str, *, longest: float = 3650 * DAY, may_be_zero: bool = False) -> float:
    """Seconds, from text such as `30`, `5m` or `26w`; at most `longest`. Raises UsageError."""
    match = re.fullmatch(_DURATION, text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else -1.0
    if not 0 <= seconds <= longest or not (seconds or may_be_zero):
        raise UsageError("invalid duration", hint=_hint(text, seconds, longest))
    return seconds


def with_unit(text: str) -> str:
    """A duration as it was written, with the unit of a bare number."""
    return text if text[-1:].isalpha() else f"{text}s"


def written_duration(seconds: float) -> str:
    """A duration as `parse_duration` reads it, with the largest unit but weeks: `180d`."""
    unit = next((one for one in "dhm" if seconds % _SECONDS[one] == 0), "s")
    return f"{seconds / _SECONDS[unit]:.9f}".rstrip("0").rstrip(".") + unit


def _hint(text: str, seconds: float, longest: float) -> str:
    if seconds > longest:
        return f"write at most {longest // DAY:.0f}d" if longest > DAY else "write at most 24h"
    examples = "30s, 5m or 24h" if longest <= DAY else "30s, 5m, 2h, 14d or 26w"
    if re.match(r"[0-9.]+\s*[A-Za-z]", text):
        units = "s, m (minutes), h, d and w (weeks)"
        return f"write {examples}: the units are {units}, without a space"
    return f"write {examples}"


def format_duration(seconds: float) -> str:
    """In whole seconds, rounded up, such as "12 s", "5 min 12 s" or "2 h 10 min"."""
    minutes, left = divmod(max(math.ceil(seconds), 0), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
