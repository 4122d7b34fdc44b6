"""Threads that take turns: what holds one up does not hold up the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dkimctl.service.server.leader_followers import LeaderFollowers
from thread_limits import FewThreads

LONG = 10.0  # seconds that nothing here takes


class Job:
    """A task that does `work`."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.done = threading.Event()
        self.is_cancelled = False
        self.thread = 0

    def service(self) -> None:
        self.thread = threading.get_ident()
        self._work()
        self.done.set()

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """What a leader runs: it waits until it is woken up, and adds the tasks that were given."""

    def __init__(self, threads: LeaderFollowers) -> None:
        self.threads = threads
        self.rounds = 0
        self.leaders: set[int] = set()
        self.is_over = False
        self._given: list[Job] = []
        self._awake = threading.Event()

    def give(self, *jobs: Job) -> None:
        self._given.extend(jobs)
        self._awake.set()

    def end(self) -> None:
        self.is_over = True
        self._awake.set()

    def go_on(self, wait: float) -> bool:
        self._awake.wait(wait)
        self._awake.clear()
        assert self.threads.is_leader
        self.rounds += 1
        self.leaders.add(threading.get_ident())
        while self._given:
            self.threads.add_task(self._given.pop(0))
        return not self.is_over

    def wake(self) -> None:
        self._awake.set()


@contextmanager
def running(threads: int) -> Iterator[Loop]:
    pool = LeaderFollowers(threads)
    loop = Loop(pool)
    runner = threading.Thread(target=pool.run, args=(loop.go_on, loop.wake))
    runner.start()
    try:
        yield loop
    finally:
        loop.end()
        runner.join(LONG)
        assert not runner.is_alive()
        pool.close()


def test_quick_requests_are_answered_by_the_thread_of_the_loop() -> None:
    with running(threads=4) as loop:
        jobs = [Job(lambda: None) for _ in range(100)]
        loop.give(*jobs)
        assert all(job.done.wait(LONG) for job in jobs)
    assert {job.thread for job in jobs} <= loop.leaders


def test_others_are_answered_while_one_waits() -> None:
    with running(threads=2) as loop:
        go = threading.Event()
        slow, quick = Job(lambda: go.wait(LONG)), Job(lambda: None)
        loop.give(slow, quick)
        assert quick.done.wait(LONG)
        assert not slow.done.is_set()
        go.set()
        assert slow.done.wait(LONG)
    assert slow.thread != quick.thread


def test_the_loop_goes_on_while_all_threads_wait() -> None:
    with running(threads=2) as loop:
        go = threading.Event()
        slow = [Job(lambda: go.wait(LONG)) for _ in range(2)]
        late = Job(lambda: None)
        loop.give(*slow, late)
        assert not late.done.wait(0.3)
        rounds = loop.rounds
        loop.wake()
        assert soon(lambda: loop.rounds > rounds)
        go.set()
        assert late.done.wait(LONG), "it is answered as soon as a thread is free"


def test_a_thread_that_was_relieved_leads_again() -> None:
    with running(threads=1) as loop:
        for _ in range(3):
            job = Job(lambda: time.sleep(0.2))
            loop.give(job)
            assert job.done.wait(LONG)
    assert len(loop.leaders) == 2


def test_a_request_that_fails_does_not_end_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), running(threads=1) as loop:
        after = Job(lambda: None)
        loop.give(Job(lambda: 1 / 0), after)
        assert after.done.wait(LONG)
    assert "ZeroDivisionError" in caplog.text


def test_a_loop_that_fails_ends_with_its_error() -> None:
    pool = LeaderFollowers(1)

    def fail(_wait: float) -> bool:
        raise OSError("the loop is broken")

    with pytest.raises(OSError, match="the loop is broken"):
        pool.run(fail, lambda: None)


def test_what_is_not_answered_at_the_end_is_cancelled() -> None:
    pool = LeaderFollowers(1)
    job = Job(lambda: None)
    pool.add_task(job)
    pool.close()
    assert job.is_cancelled
    assert not job.done.is_set()


@pytest.mark.parametrize(("allowed", "count"), [(0, 0), (1, 1), (3, 3), (9, 4)])
def test_requests_are_answered_with_the_threads_that_can_be_had(allowed: int, count: int) -> None:
    pool = LeaderFollowers(4, FewThreads(allowed))
    assert pool.threads == count
    pool.close()


def soon(is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + LONG
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_true()
