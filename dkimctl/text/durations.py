"""Lengths of time, as people write them."""

from __future__ import annotations

import re

from dkimctl.errors import UsageError
from dkimctl.text.wording import shown

DAY = 86400.0  # seconds

_DURATION = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)"  # compiled when it is first used
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY}


def parse_duration(text: str, *, longest: float = 3650 * DAY, may_be_zero: bool = False) -> float:
    """Seconds, from such as `30`, `30s`, `5m`, `1h` or `180d`.

    Raises UsageError for other text, and for what is longer than `longest` seconds.
    """
    found = re.fullmatch(_DURATION, text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else -1.0
    if not 0 <= seconds <= longest or not (seconds or may_be_zero):
        example = "30s, 5m or 24h" if longest <= DAY else "30m, 24h or 180d"
        raise UsageError(f"{shown(text)} is no length of time", hint=f"write {example}")
    return seconds
