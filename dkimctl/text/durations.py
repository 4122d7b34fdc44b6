"""Durations, as people write and read them."""

from __future__ import annotations

import math
import re

from dkimctl.errors import UsageError

DAY = 86400.0  # seconds

_DURATION = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)"  # compiled when it is first used
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY}


def parse_duration(text: str, *, longest: float = 3650 * DAY, may_be_zero: bool = False) -> float:
    """Seconds, from text such as `30`, `30s`, `5m`, `1h` or `180d`.

    Raises UsageError for other text, and for more than `longest` seconds.
    """
    match = re.fullmatch(_DURATION, text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else -1.0
    if not 0 <= seconds <= longest or not (seconds or may_be_zero):
        examples = "30s, 5m or 24h" if longest <= DAY else "30s, 5m, 2h or 14d"
        raise UsageError("invalid duration", hint=f"write {examples}")
    return seconds


def format_duration(seconds: float) -> str:
    """In whole seconds, rounded up, such as "12 s", "5 min 12 s" or "2 h 10 min"."""
    minutes, left = divmod(max(math.ceil(seconds), 0), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
