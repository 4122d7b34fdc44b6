"""When requests are sent, and how many: pauses, a disk that fills up, few threads."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.errors import Throttled
from dkimctl.registration.limits import ConcurrencyLimiter, WorkerChannel
from fakes import Clock, entries


def test_a_limiter_adds_one_for_each_answer_and_halves_after_429():
    clock = Clock(1000.0)
    limiter = ConcurrencyLimiter(8, clock)
    limits = [limiter.limit]
    for _ in range(9):
        limiter.answered()
        limits.append(limiter.limit)
    assert limits == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]
    limiter.throttled(5.0)
    limiter.throttled(1.0)  # the longer pause counts
    assert (limiter.limit, limiter.pause_left()) == (0, 5.0)
    clock.now += 5.1
    assert (limiter.limit, limiter.pause_left()) == (2, 0.0)
    for _ in range(9):
        limiter.throttled(0.0)
    assert limiter.limit == 1, "never less"
    limits = []
    for _ in range(4):
        limiter.answered()
        limits.append(limiter.limit)
    assert limits == [2, 2, 2, 3], "it grows slowly from then on"
    for _ in range(100):
        limiter.answered()
    assert limiter.limit == 8


PAUSE = 0.5  # seconds


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["s1", None])
def test_no_request_is_sent_during_a_pause(register, selector):
    lock = threading.Lock()
    sent, waits_since = [], []

    def before(specs, run):
        run.observer.waiting = lambda *wait: waits_since.append(time.monotonic())
        with lock:
            sent.append(time.monotonic())
            is_refused = len(sent) == 20
        time.sleep(0.08)  # so that others are in flight, and more have a permit
        if is_refused:
            raise Throttled("429", retry_after=PAUSE)

    run = register(
        entries(60, selector), before=before, batch_size=1, concurrency=4, channel=WorkerChannel()
    )
    assert run.outcomes == ["created"] * 60
    # What left at the same moment does not count; the wait was reckoned from a little before.
    meanwhile = [at for at in sent if waits_since[0] + 0.1 < at < waits_since[0] + PAUSE - 0.1]
    assert meanwhile == []
    assert len(sent) == 61
