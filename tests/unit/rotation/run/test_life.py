"""The stages of a key as `list` tells them, while `rotate run` does its work."""

from __future__ import annotations

import pytest

from dkimctl.names import Selection
from dkimctl.rotation.life import read_keys
from dkimctl.settings.config import RotationSettings

A = "a.example"


@pytest.fixture
def stage(world):
    """The stage of the first key, the next action, and in how many days that is due."""

    def stage():
        selection = Selection([], read_specs=lambda _: [], to_domain=str)
        with world.open_ledger(for_writing=False) as ledger:
            statuses = [*read_keys(ledger, selection, RotationSettings(), world.now)]
        [one] = [one for one in statuses if one.selector == "s1"]
        return (
            one.stage,
            one.action,
            one.due and round((one.due - world.now).total_seconds() / 86400),
        )

    return stage


def test_each_stage_of_a_life(world, stage):
    world.register(A, start_date="2027-01-08T10:00+00:00")
    assert stage() == ("registered", "publish", 4)  # then it is urgent
    world.run()
    assert stage() == ("published", "wait", 7)
    world.pass_time(days=8)
    assert stage() == ("signing", "register successor", 172)
    world.pass_time(days=172)
    assert stage() == ("signing", "register successor", 0)
    world.is_covered = False
    world.run()
    assert stage() == ("successor registered", "wait", 7)
    world.is_covered = True
    world.run()
    assert stage() == ("successor published", "wait", 7)
    world.pass_time(days=7, minutes=1)
    assert stage() == ("grace period", "remove", 14)
    world.pass_time(days=14)
    world.is_covered = False
    world.run()
    assert stage() == ("retired", "remove", 0)
    world.is_covered = True
    world.run()
    assert stage() == ("removed", "none", None)
