"""Threads, of which a system may allow only a few (`ulimit -u`)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from dkimctl.errors import ThreadLimitError

_MAX_AT_ONCE = 8  # jobs
_TICK = 0.2  # seconds

Job = TypeVar("Job")
Item = TypeVar("Item")


def start_daemon(work: Callable[[], object], name: str) -> threading.Thread | None:
    """Start a thread, for whose end no program waits; None if the system allows no further one."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # Python has no class of its own for this
        return None
    return thread


class DaemonThreadPool(Generic[Job]):
    """Threads, each of which does one job at a time with `work`, which may not raise.

    Unlike that of concurrent.futures, it says how many threads it could start, and nothing waits
    for them.
    """

    def __init__(self, work: Callable[[Job], None], name: str) -> None:
        self._work = work
        self._name = name
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._size = 0

    def grow(self, size: int) -> int:
        """Start threads until there are `size`, or as many as can be had; returns how many."""
        while self._size < size and start_daemon(self._run, self._name) is not None:
            self._size += 1
        return self._size

    def submit(self, job: Job) -> None:
        self._jobs.put(job)

    def close(self) -> None:
        """Let the threads end after their jobs; waits for none."""
        for _ in range(self._size):
            self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._work(job)
            del job  # a thread that waits keeps nothing alive


@contextmanager
def reserved_threads(count: int) -> Iterator[None]:
    """Within the block `count` threads are taken, so that it leaves room for as many."""
    done = threading.Event()
    threads = [start_daemon(done.wait, "reserved") for _ in range(count)]
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            if thread is not None:
                thread.join()


def work_in_parallel(
    jobs: Iterable[Job], work: Callable[[Job], Iterable[Item]], emit: Callable[[Item], None], *,
    wait: Callable[[], None],
) -> None:  # fmt: skip
    """Emit, in this thread, the items that `work` makes of each job, several jobs at a time.

    While there are none, calls `wait` five times a second. Raises the first error of a job at the
    end of all; ThreadLimitError without a thread.
    """
    waiting = list(jobs)
    made: queue.SimpleQueue[Item | None] = queue.SimpleQueue()  # None ends a job
    errors: list[Exception] = []

    def do(job: Job) -> None:
        try:
            for item in work(job):
                made.put(item)
        except Exception as error:  # noqa: BLE001 - raised again in the other thread
            errors.append(error)
        made.put(None)

    pool = DaemonThreadPool[Job](do, "zone")
    if waiting and not pool.grow(min(_MAX_AT_ONCE, len(waiting))):
        raise ThreadLimitError
    for job in waiting:
        pool.submit(job)
    pool.close()
    running = len(waiting)
    while running:
        try:
            item = made.get(timeout=_TICK)
        except queue.Empty:
            wait()
            continue
        if item is None:
            running -= 1
        else:
            emit(item)
    if errors:
        raise errors[0]
