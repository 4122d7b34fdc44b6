from __future__ import annotations

from collections import Counter

from dkimctl.models.registration import Outcome
from dkimctl.render.summary import summary


def test_says_how_many_came_to_what() -> None:
    counts = Counter({Outcome.TAKEN: 1, Outcome.EXISTS: 2, Outcome.CREATED: 3})
    assert summary(counts) == "created 3, already there 2, taken 1"


def test_has_a_word_for_every_outcome() -> None:
    assert summary(dict.fromkeys(Outcome, 1)) == (
        "created 1, already there 1, to create 1, differs 1, taken 1, invalid 1, unusable 1, "
        "failed 1, unknown 1"
    )


def test_nothing_is_said_as_well() -> None:
    assert summary({}) == summary({Outcome.CREATED: 0}) == "nothing to do"
