"""Work on many things at a time, with the results in the thread that asked for them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from dkimctl.errors import ThreadLimitError
from dkimctl.system.threads import DaemonThreadPool

Job = TypeVar("Job")
Item = TypeVar("Item")

_MAX_THREADS = 8
_TICK = 0.2  # seconds


class _End(NamedTuple):
    """The end of a job; `error` is what it raised."""

    error: Exception | None


def work_in_parallel(
    jobs: Iterable[Job],
    work: Callable[[Job], Iterable[Item]],
    emit: Callable[[Item], None],
    *,
    wait: Callable[[], None],
) -> None:
    """Emit, in this thread, the items that `work` makes of each job, several jobs at a time.

    The items of a job come in order. `wait` is called while there are none, five times a second.
    Raises the first error of a job at the end of all; ThreadLimitError without a thread.
    """
    waiting = list(jobs)
    if not waiting:
        return
    made: queue.SimpleQueue[Item | _End] = queue.SimpleQueue()
    pool = DaemonThreadPool[Job](lambda job: made.put(_End(_feed(job, work, made.put))), "zone")
    if not pool.grow(min(_MAX_THREADS, len(waiting))):
        raise ThreadLimitError
    for job in waiting:
        pool.submit(job)
    pool.close()
    failures = _drain(made, len(waiting), emit, wait)
    if failures:
        raise failures[0]


def _feed(
    job: Job, work: Callable[[Job], Iterable[Item]], put: Callable[[Item], None]
) -> Exception | None:
    """Put the items of a job; returns the error that ended it."""
    try:
        for item in work(job):
            put(item)
    except Exception as error:  # noqa: BLE001 - raised again in the other thread
        return error
    return None


def _drain(
    made: queue.SimpleQueue[Item | _End],
    left: int,
    emit: Callable[[Item], None],
    wait: Callable[[], None],
) -> list[Exception]:
    """Emit what is made until the jobs that are `left` have ended; returns their errors."""
    failures = []
    while left:
        try:
            item = made.get(timeout=_TICK)
        except queue.Empty:
            wait()
            continue
        if not isinstance(item, _End):
            emit(item)
            continue
        left -= 1
        if item.error is not None:
            failures.append(item.error)
    return failures
