"""A run in one line."""

from __future__ import annotations

from collections.abc import Mapping

from dkimctl.models.registration import Outcome

# In the order in which they are said.
_WORDS = {
    Outcome.CREATED: "created",
    Outcome.EXISTS: "already there",
    Outcome.PENDING: "to create",
    Outcome.DIFFERS: "differs",
    Outcome.TAKEN: "taken",
    Outcome.INVALID: "invalid",
    Outcome.UNUSABLE: "unusable",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "unknown",
}


def summary(counts: Mapping[Outcome, int]) -> str:
    """How many domains came to what, such as "created 3, already there 2"."""
    said = [f"{word} {counts[outcome]}" for outcome, word in _WORDS.items() if counts.get(outcome)]
    return ", ".join(said) or "nothing to do"
