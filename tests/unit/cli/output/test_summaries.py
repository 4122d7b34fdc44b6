"""The summary of many outcomes, by what the command did."""

from __future__ import annotations

from collections import Counter

import pytest

from dkimctl.cli.output.results import Doing, summary
from dkimctl.models.registration import Outcome


def test_says_how_many_came_to_what() -> None:
    counts = Counter({Outcome.TAKEN: 1, Outcome.EXISTS: 2, Outcome.CREATED: 3})
    assert summary(counts) == "created 3, already there 2, taken 1"


def test_has_a_word_for_every_outcome() -> None:
    assert summary(dict.fromkeys(Outcome, 1)) == (
        "created 1, already there 1, not registered 1, retired 1, differs 1, taken 1, invalid 1, "
        "unusable 1, failed 1, unknown 1"
    )


@pytest.mark.parametrize(
    ("doing", "words"),
    [
        (Doing.PLANNING, "already there 1, to create 3"),
        (Doing.REGISTERING, "already there 1, not registered 3"),
        (Doing.REFRESHING, "already there 1, not refreshed 3"),
    ],
)
def test_what_is_pending_depends_on_the_command(doing: Doing, words: str) -> None:
    assert summary({Outcome.PENDING: 3, Outcome.EXISTS: 1}, doing) == words


def test_records_are_counted_where_they_are_shown() -> None:
    counts = {Outcome.EXISTS: 2, Outcome.CREATED: 1, Outcome.TAKEN: 4, Outcome.UNUSABLE: 5}
    assert summary(counts, Doing.SHOWING) == "3 records, taken 4, unusable 5"
    assert summary({Outcome.EXISTS: 1}, Doing.SHOWING) == "1 record"
    assert summary({Outcome.RETIRED: 1}, Doing.SHOWING) == "retired 1"


def test_nothing_is_said_as_well() -> None:
    assert summary({}) == summary({Outcome.CREATED: 0}) == "nothing to do"
    assert summary({}, Doing.SHOWING) == "no records"
