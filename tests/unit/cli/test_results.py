"""The summary and the exit code of many outcomes and errors."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from dkimctl.cli.output.results import Shown, summary, worst
from dkimctl.errors import ExitCode, OutputError
from dkimctl.models.registration import Outcome


def test_where_several_apply_the_worst_counts():
    order = [130, 3, 4, 2, 1, 0]
    for first, second in itertools.combinations(order, 2):
        assert worst([ExitCode(second), ExitCode(first)]) == first
    assert worst([]) == 0


def test_every_exit_code_has_its_place():
    assert all(worst([code]) is code for code in ExitCode)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_an_exit_code(outcome):
    assert Shown(Counter([outcome]), None).status in (0, 1, 4)


def test_what_could_not_be_written_is_4_at_least():
    shown = Shown(Counter([Outcome.TAKEN, Outcome.CREATED]), OutputError("full"))
    assert shown.status == 4


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
