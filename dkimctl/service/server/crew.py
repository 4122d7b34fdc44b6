"""Threads that take turns to run the server's loop, and to answer what it received."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from dkimctl.service.failures import describe_failure
from dkimctl.service.waiting import own_thread
from dkimctl.system.threads import StartThread, start_daemon

_PATIENCE = 0.05  # seconds that the loop may stand still for an answer, or twice that
_AT_ONCE = 0.01  # seconds of answers between two rounds of the loop
_logger = logging.getLogger(__name__)


class Task(Protocol):
    """What waitress adds: a connection with a request."""

    def service(self) -> None: ...

    def cancel(self) -> None: ...


class Crew:
    """Threads of which one leads: it runs the loop, and answers the requests itself.

    To hand each request to another thread takes longer than most answers: the threads would then
    compete for the interpreter lock, and take it to another processor and back. If an answer takes
    long, or says that it is `about_to_wait`, another thread becomes the leader.

    Up to `threads` requests are answered at the same time, or fewer if the system does not allow so
    many threads: `threads` is how many.
    """

    def __init__(self, threads: int, start_thread: StartThread = start_daemon) -> None:
        self._tasks: deque[Task] = deque()
        self._lock = threading.RLock()
        self._is_vacant = threading.Condition(self._lock)  # there is no leader
        self._has_ended = threading.Condition(self._lock)
        self._go_on: Callable[[float], bool] = lambda _wait: False
        self._wake: Callable[[], object] = lambda: None
        self._is_running = False
        self._leader: int | None = None
        self._answering_since: float | None = None  # of the leader; time.monotonic
        self._relieved = 0  # threads whose answer takes long
        self._is_over = False
        self._failure: BaseException | None = None
        started = 0
        while started <= threads and start_thread(self._work, "server") is not None:
            started += 1
        self.threads = max(started - 1, 0)  # one is always there for the loop

    @property
    def is_led_here(self) -> bool:
        """Whether this thread is the leader."""
        return self._leader == threading.get_ident()

    def add_task(self, task: Task) -> None:
        """Have `task` answered. Other threads than the leader wake it up afterwards."""
        self._tasks.append(task)

    def run(self, go_on: Callable[[float], bool], wake: Callable[[], object]) -> None:
        """Have the threads call `go_on` again and again, until it returns False.

        It does one round of the loop, in which it may wait as many seconds as it is told, unless
        `wake` is called. Raises what `go_on` raises.
        """
        with self._lock:
            self._go_on, self._wake, self._is_running = go_on, wake, True
            self._is_vacant.notify_all()
            while not self._is_over:
                self._has_ended.wait(_PATIENCE)
                self._relieve_leader()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the threads, and drop what is not answered; waits for none."""
        with self._lock:
            self._is_over = True
            self._is_vacant.notify_all()
        while self._tasks:
            self._tasks.popleft().cancel()

    def _work(self) -> None:
        own_thread(self._give_way)
        while self._become_leader():
            try:
                self._lead()
            except BaseException as error:  # noqa: BLE001 - raised by `run`
                self._end(error)

    def _become_leader(self) -> bool:
        """Wait until there is no leader; False if it is over."""
        with self._lock:
            while not self._is_over and (self._leader is not None or not self._is_running):
                self._is_vacant.wait()
            self._leader = threading.get_ident()
            return not self._is_over

    def _lead(self) -> None:
        """Run the loop, until it is over, or another thread has become the leader."""
        while not self._is_over and self._go_on(0.0 if self._can_answer() else 1.0):
            until = time.monotonic() + _AT_ONCE
            while self._can_answer() and time.monotonic() < until:
                if not self._answer(self._tasks.popleft()):
                    return
        self._end()

    def _can_answer(self) -> bool:
        """Whether there is a request, and a thread for the loop if the answer takes long."""
        return bool(self._tasks) and self._relieved < self.threads

    def _answer(self, task: Task) -> bool:
        """Whether this thread is still the leader."""
        self._answering_since = time.monotonic()
        try:
            task.service()
        except BaseException as error:  # noqa: BLE001 - the server goes on
            _logger.error("the HTTP server failed: %s", describe_failure(error))
        with self._lock:
            if self.is_led_here:
                self._answering_since = None
                return True
            self._relieved -= 1
        self._wake()  # the loop has to look at the connection again, and may have a task for us
        return False

    def _relieve_leader(self) -> None:
        """Let another thread go on with the loop if the leader's answer takes long."""
        since = self._answering_since
        if since is not None and time.monotonic() > since + _PATIENCE:
            self._replace_leader()

    def _give_way(self) -> None:
        """Let another thread go on with the loop; called within an answer."""
        with self._lock:
            if self.is_led_here:
                self._replace_leader()

    def _replace_leader(self) -> None:
        self._relieved += 1
        self._leader = self._answering_since = None
        self._is_vacant.notify()

    def _end(self, failure: BaseException | None = None) -> None:
        with self._lock:
            self._failure = self._failure or failure
            self._is_over = True
            self._is_vacant.notify_all()
            self._has_ended.notify()
