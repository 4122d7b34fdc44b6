"""The exit code of many outcomes and errors."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from dkimctl.cli.output.results import Shown, worst
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
