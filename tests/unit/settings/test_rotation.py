"""When keys are replaced, as the config file says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dkimctl.settings.config import RotationSettings


def test_what_is_not_set_has_its_default(load):
    config = load("rotation: {max_age: 26w, limit: 5}\n")
    assert config.rotation == RotationSettings(timedelta(days=182), limit=5)
    assert load("rotation: {grace: 5d}\n").rotation.grace == timedelta(days=5)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("max_age: 7d", "1:12: lead is not shorter than max_age"),
        ("max_age: 30d, lead: 30d", "1:26: lead is not shorter than max_age"),
        ("lead: 0", "1:18: lead: invalid duration"),
        (
            "grace: 119h",
            "1:19: grace: shorter than 5 days, for which signed mail may be on its way",
        ),
        ("max_age: 180", "1:21: max_age: a number without a unit"),
        ("limit: 0", "1:19: limit: the value is not a number, or out of range"),
        ("maxage: 90d", '1:12: rotation has no key "maxage"'),
    ],
)
def test_a_plan_that_cannot_work_is_refused(problems, given, problem):
    assert [found.split(":", 1)[1] for found in problems(f"rotation: {{{given}}}\n")] == [problem]
