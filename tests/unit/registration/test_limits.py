"""How many requests may be in flight."""

from __future__ import annotations

import pytest

from dkimctl.registration.limits import ConcurrencyLimiter
from fakes import Clock


@pytest.fixture
def clock():
    return Clock(1000.0)


@pytest.fixture
def pace(clock):
    return ConcurrencyLimiter(8, clock)


def test_starts_with_one_and_adds_one_for_each_answer(pace):
    assert pace.limit == 1
    for allowed in range(2, 9):
        pace.answered()
        assert pace.limit == allowed
    pace.answered()


def test_429_halves_the_limit_and_allows_none_during_the_pause(pace, clock):
    for _ in range(8):
        pace.answered()
    pace.throttled(5.0)
    assert (pace.limit, pace.pause_left()) == (0, 5.0)
    clock.now += 4.9
    assert pace.limit == 0
    clock.now += 0.2
    assert (pace.limit, pace.pause_left()) == (4, 0.0)


def test_grows_slowly_after_a_429_and_never_falls_below_one(pace):
    for _ in range(9):
        pace.throttled(0.0)
    assert pace.limit == 1
    pace.answered()
    assert pace.limit == 2
    pace.answered()
    assert pace.limit == 2
    pace.answered()
    assert pace.limit == 2
    for _ in range(100):
        pace.answered()
    assert pace.limit == 8


def test_the_longer_pause_counts(pace):
    pace.throttled(9.0)
    pace.throttled(1.0)
    assert pace.pause_left() == 9.0
