"""The channel between the threads that send batches and the engine."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from dkimctl.errors import ServiceError
from dkimctl.registration.engine.batches import Batch


class Stopped(Exception):
    """The run ends: nothing more may be sent."""


class EventKind(Enum):
    """What a worker reports about its batch."""

    NEEDS_PERMIT = 1
    BACKING_OFF = 2
    DONE = 3


class WorkerEvent(NamedTuple):
    """One report; `failure` is why a batch backs off, and `seconds` for how long."""

    kind: EventKind
    batch: Batch
    failure: ServiceError | None = None
    seconds: float = 0.0


class WorkerChannel:
    """A worker acquires a permit before it sends, and reports when it backs off or is done.

    The engine collects the reports, and grants permits once the ledger has the intents.
    """

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[WorkerEvent | None] = queue.SimpleQueue()
        self._stopping = threading.Event()

    def wake(self) -> None:
        """End a `collect` that waits. Safe in a signal handler: a SimpleQueue is reentrant."""
        self._events.put(None)

    def end_waits(self) -> None:
        """End all backing off, now and later."""
        self._stopping.set()

    def acquire_permit(self, batch: Batch, positions: Sequence[int]) -> None:
        """Return when these entries may be sent; raises Stopped when they no longer may."""
        if batch.was_sent:  # the engine grants the first permit without being asked
            batch.to_send = positions
            self._events.put(WorkerEvent(EventKind.NEEDS_PERMIT, batch))
        if not batch.permit.get():
            raise Stopped
        batch.was_sent = True

    def report_backoff(self, batch: Batch, failure: ServiceError, seconds: float) -> None:
        """`batch` waits before its request is sent again."""
        self._events.put(WorkerEvent(EventKind.BACKING_OFF, batch, failure, seconds))

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or at once when the run ends."""
        self._stopping.wait(seconds)

    def report_done(self, batch: Batch) -> None:
        """`batch` has all the results that it will have."""
        self._events.put(WorkerEvent(EventKind.DONE, batch))

    def collect(self, timeout: float) -> list[WorkerEvent]:
        """The reports that are there or arrive within `timeout` seconds; perhaps none."""
        events = []
        with contextlib.suppress(queue.Empty):
            events.append(self._events.get(timeout=timeout))
            while True:
                events.append(self._events.get_nowait())
        return [event for event in events if event is not None]
