"""Threads, where the system allows few."""

from __future__ import annotations

import queue

import pytest

from dkimctl.threads import DaemonThreadPool, reserved_threads
from thread_limits import FewThreads


@pytest.mark.parametrize(("allowed", "count"), [(0, 0), (2, 2), (9, 3)])
def test_a_pool_has_the_threads_that_can_be_had(allowed, count):
    pool = DaemonThreadPool(lambda job: None, "test", FewThreads(allowed))
    assert [pool.grow(1), pool.grow(3)] == [min(count, 1), count]
    pool.close()


def test_each_job_is_done_once():
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    pool = DaemonThreadPool(done.put, "test", FewThreads(2))
    pool.grow(8)
    for job in range(100):
        pool.submit(job)
    assert sorted(done.get(timeout=60) for _ in range(100)) == list(range(100))
    pool.close()


@pytest.mark.parametrize(("allowed", "left"), [(0, 0), (1, 0), (5, 3)])
def test_reserved_threads_can_be_had_afterwards(allowed, left):
    start_thread = FewThreads(allowed)
    pool = DaemonThreadPool(lambda job: None, "test", start_thread)
    with reserved_threads(2, start_thread):
        assert pool.grow(9) == left
    assert pool.grow(9) == allowed
    pool.close()
