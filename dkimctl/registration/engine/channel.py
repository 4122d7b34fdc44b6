"""Where the threads that send requests and the registrar, which keeps the ledger, meet."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from dkimctl.errors import ServiceError
from dkimctl.registration.engine.batch import Batch


class Stopped(Exception):
    """The run is to end: nothing more may be sent."""


class EventKind(Enum):
    """What a thread has to say of its batch."""

    ASKS_LEAVE = 1
    WAITS = 2
    DONE = 3


class WorkerEvent(NamedTuple):
    """One batch's news; `failure` is why one waits, and `seconds` for how long."""

    news: EventKind
    batch: Batch
    failure: ServiceError | None = None
    seconds: float = 0.0


class WorkerChannel:
    """A thread asks for leave before it sends, and tells when it waits and when it is done.

    The registrar collects that, and gives leave once the ledger has the intent.
    """

    def __init__(self) -> None:
        self._notices: queue.SimpleQueue[WorkerEvent | None] = queue.SimpleQueue()
        self._stopping = threading.Event()

    def wake(self) -> None:
        """End a `collect` that waits. Safe in a signal handler: a SimpleQueue is reentrant."""
        self._notices.put(None)

    def end_waits(self) -> None:
        """End all waiting for a better time, for good."""
        self._stopping.set()

    def ask_leave(self, batch: Batch, positions: Sequence[int]) -> None:
        """Return when these entries are being sent; raises Stopped when they no longer may be."""
        if batch.was_sent:  # for its first request a batch has leave, or gets it unasked
            batch.wanted = positions
            self._notices.put(WorkerEvent(EventKind.ASKS_LEAVE, batch))
        if not batch.leave.get():
            raise Stopped
        batch.was_sent = True

    def put_off(self, batch: Batch, failure: ServiceError, seconds: float) -> None:
        """Tell that `batch` is going to wait before its request is sent again."""
        self._notices.put(WorkerEvent(EventKind.WAITS, batch, failure, seconds))

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds, or at once when the run is to end."""
        self._stopping.wait(seconds)

    def hand_in(self, batch: Batch) -> None:
        """Tell that `batch` has all the results that it will have."""
        self._notices.put(WorkerEvent(EventKind.DONE, batch))

    def collect(self, timeout: float) -> list[WorkerEvent]:
        """What has come in, or comes in within so many seconds; nothing, perhaps."""
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._notices.get(timeout=timeout))
            while True:
                found.append(self._notices.get_nowait())
        return [notice for notice in found if notice is not None]
