"""What a check of the set-up finds."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from dkimctl.errors import DkimctlError


class State(StrEnum):
    """How a check ended. `UNKNOWN`: there is no answer; `NOT_CHECKED`: it was not tried."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    NOT_CHECKED = "not checked"


class Finding(NamedTuple):
    """What a check found, and what to do about it."""

    check: str
    state: State
    message: str
    hint: str = ""


def wrong(check: str, error: DkimctlError) -> Finding:
    return Finding(check, State.WRONG, error.message, error.hint)
