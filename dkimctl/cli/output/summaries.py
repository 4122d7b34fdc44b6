"""What a command says at its end: how many domains came to what."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dkimctl.models.registration import USABLE, Outcome
from dkimctl.text.grouping import counted

Counts = Mapping[Outcome, int]

# In the order of the summary. What is pending depends on what the command does.
_WORDS = {
    Outcome.CREATED: "created",
    Outcome.EXISTS: "already there",
    Outcome.PENDING: "",
    Outcome.RETIRED: "retired",
    Outcome.DIFFERS: "differs",
    Outcome.TAKEN: "taken",
    Outcome.INVALID: "invalid",
    Outcome.UNUSABLE: "unusable",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "unknown",
}


class Doing(Enum):
    """What a command does with the domains that it shows."""

    PLANNING = "to create"
    REGISTERING = "not registered"
    REFRESHING = "not refreshed"
    SHOWING = ""


def summary(counts: Counts, doing: Doing = Doing.REGISTERING) -> str:
    """How many domains came to what, such as "created 3, already there 2" or "3 records"."""
    words = _WORDS | {Outcome.PENDING: doing.value}
    parts = []
    if doing is Doing.SHOWING:
        words = {outcome: word for outcome, word in words.items() if outcome not in USABLE}
        records = sum(counts.get(outcome, 0) for outcome in USABLE)
        parts = [counted(records, "record")] if records else []
    parts += [f"{word} {counts[outcome]}" for outcome, word in words.items() if counts.get(outcome)]
    return ", ".join(parts) or ("no records" if doing is Doing.SHOWING else "nothing to do")
