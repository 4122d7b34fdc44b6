"""Threads, where the system allows few."""

from __future__ import annotations

import queue

import pytest

from dkimctl.threads import DaemonThreadPool, reserved_threads
from thread_limits import FewThreads


def test_each_job_is_done_once():
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    pool = DaemonThreadPool(done.put, "test", FewThreads(2))
    assert [pool.grow(1), pool.grow(8)] == [1, 2], "as many as can be had"
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
