"""Threads that make the keys of waiting requests, and say beforehand whether they can in time."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence

from dkimctl.service.keys.fair_queue import FairQueue, Order
from dkimctl.service.keys.pairs import KeyMaker, KeyPair
from dkimctl.system.threads import StartThread, start_daemon

_FIRST_GUESS = {1024: 0.01, 2048: 0.05}  # seconds, until keys have been made
_WEIGHT = 0.1  # of a new measurement
_SOON = 1.0  # seconds for which any number of requests may wait
_SHORT = 0.05  # seconds between looks whether another thread has made the last key
_IDLE = 1.0  # seconds between looks whether keys are to be made ahead


class KeysNotInTime(Exception):
    """The keys cannot be made in time; they may be in `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class KeyMaking:
    """Makes keys in `threads` threads, one for each processor by default.

    At most `max_waiting` requests wait for keys, since each holds a thread of the server, and none
    longer than `limit` seconds. `make_ahead` is called when there is nothing to do, and returns
    whether it made a key. OpenSSL releases the interpreter lock, so the threads run in parallel.
    Where the system allows none, keys are made by the thread that asks for them. `waiting` is how
    many requests wait now.
    """

    def __init__(
        self,
        make: KeyMaker,
        *,
        max_waiting: int,
        limit: float,
        threads: int | None = None,
        make_ahead: Callable[[], bool] | None = None,
        start_thread: StartThread = start_daemon,
    ) -> None:
        self._make = make
        self._most_threads = threads or os.cpu_count() or 1
        self._max_waiting = max_waiting
        self._limit = limit
        self._make_ahead = make_ahead
        self._start_thread = start_thread
        self._seconds = dict(_FIRST_GUESS)
        self._queue = FairQueue(self._seconds.__getitem__)
        self.waiting = 0
        self._threads = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def make_all(self, client_id: str, lengths: Sequence[int]) -> dict[int, KeyPair | Exception]:
        """A key for each of the lengths, by position; fewer if they were not made in time.

        Raises KeysNotInTime if that is to be expected.
        """
        with self._changed:
            self._require_room(client_id, lengths)
            order = self._queue.add(client_id, lengths)
            self.waiting += 1
            self._grow()
            self._changed.notify_all()
        try:
            self._wait_for(order)
        finally:
            with self._changed:
                self.waiting -= 1
                self._queue.withdraw(order)
                made = dict(order.made)
        return made

    def start(self) -> None:
        """Begin to make keys ahead."""
        with self._changed:
            self._grow()

    def close(self) -> None:
        """Let the threads end after their keys; waits for none."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def retry_after(self) -> int:
        """Seconds until half of what is waiting is done."""
        with self._changed:
            return self._retry_after()

    def _retry_after(self) -> int:
        seconds = self._queue.seconds_of_all() / self._most_threads / 2
        return max(1, min(math.ceil(seconds), math.ceil(self._limit)))

    def _require_room(self, client_id: str, lengths: Sequence[int]) -> None:
        """Raise KeysNotInTime, unless it is soon anyway, or nobody waits.

        A request that waits alone is always tried, since its keys are kept if it fails.
        """
        seconds = self._queue.seconds_until(client_id, lengths) / self._most_threads
        if not self.waiting or seconds < _SOON:
            return
        mine = self._queue.of_clients()[client_id]
        is_greedy = mine and mine >= self._max_waiting * 3 // 4
        if self.waiting >= self._max_waiting or is_greedy or seconds > self._limit:
            raise KeysNotInTime(self._retry_after())

    def _wait_for(self, order: Order) -> None:
        deadline = time.monotonic() + self._limit
        if self._threads:
            order.done.wait(self._limit)
        while not order.done.is_set() and time.monotonic() < deadline:
            if not self._make_next():
                order.done.wait(_SHORT)

    def _grow(self) -> None:
        while self._threads < self._most_threads:
            if self._start_thread(self._run, "key") is None:
                break
            self._threads += 1

    def _run(self) -> None:
        while self._make_next() or self._made_ahead() or self._rest():
            pass

    def _made_ahead(self) -> bool:
        return self._make_ahead is not None and not self._is_closed and self._make_ahead()

    def _make_next(self) -> bool:
        """Make the next key; False if none is wanted."""
        with self._changed:
            wanted = self._queue.next_key()
        if wanted is None:
            return False
        order, position = wanted
        key = self._timed(order.lengths[position])
        with self._changed:
            order.complete(position, key)
        return True

    def _timed(self, key_len: int) -> KeyPair | Exception:
        started = time.monotonic()
        try:
            key = self._make(key_len)
        except Exception as error:  # noqa: BLE001 - of this key alone
            return error
        taken = time.monotonic() - started
        self._seconds[key_len] += _WEIGHT * (taken - self._seconds[key_len])
        return key

    def _rest(self) -> bool:
        """Wait for work; False if the thread is to end."""
        with self._changed:
            if not self._queue and (self._make_ahead is None or self._is_closed):
                self._threads -= 1
                return False
            if not self._queue:
                self._changed.wait(_IDLE)
            return True
