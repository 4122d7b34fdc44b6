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
    made: queue.SimpleQueue[Item | _End] = queue.SimpleQueue()

    def do(job: Job) -> None:
        error = None
        try:
            for item in work(job):
                made.put(item)
        except Exception as raised:  # noqa: BLE001 - raised again in the other thread
            error = raised
        made.put(_End(error))

    pool = DaemonThreadPool[Job](do, "zone")
    if waiting and not pool.grow(min(_MAX_THREADS, len(waiting))):
        raise ThreadLimitError
    for job in waiting:
        pool.submit(job)
    pool.close()
    ends: list[_End] = []
    while len(ends) < len(waiting):
        try:
            item = made.get(timeout=_TICK)
        except queue.Empty:
            wait()
            continue
        if isinstance(item, _End):
            ends.append(item)
        else:
            emit(item)
    for end in ends:
        if end.error is not None:
            raise end.error
