"""How many requests may be under way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkimctl.registration.engine.limits import ConcurrencyLimiter


@pytest.fixture
def clock():
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def pace(clock):
    return ConcurrencyLimiter(8, lambda: clock.now)


def test_one_at_first_and_one_more_for_each_answer(pace):
    assert pace.limit == 1
    for allowed in range(2, 9):
        pace.answered()
        assert pace.limit == allowed
    pace.answered()


def test_half_as_many_after_429_and_none_while_the_service_asks_for_peace(pace, clock):
    for _ in range(8):
        pace.answered()
    pace.throttled(5.0)
    assert (pace.limit, pace.pause_left()) == (0, 5.0)
    clock.now += 4.9
    assert pace.limit == 0
    clock.now += 0.2
    assert (pace.limit, pace.pause_left()) == (4, 0.0)


def test_afterwards_more_only_slowly_and_always_one(pace):
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
