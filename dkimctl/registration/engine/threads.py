"""Threads that work on several jobs at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Job = TypeVar("Job")


class DaemonThreadPool(Generic[Job]):
    """At most `size` threads, each of which does one job at a time.

    Daemon threads, and so none of concurrent.futures: a request that hangs must not hold up
    the end of the program. `work` has to keep its errors to itself.
    """

    def __init__(self, size: int, work: Callable[[Job], None]) -> None:
        self._size = size
        self._work = work
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self, job: Job) -> None:
        """Have a thread do `job` as soon as one is free."""
        if len(self._threads) < self._size:
            thread = threading.Thread(target=self._run, daemon=True, name="dkimctl-request")
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)

    def dismiss(self) -> None:
        """Let the threads end once they are through with their jobs; waits for none."""
        for _ in self._threads:
            self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._work(job)
