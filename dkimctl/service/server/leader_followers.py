"""Threads that take turns to run the server's loop, and to answer what it received."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from dkimctl.service.failures import describe_failure
from dkimctl.system.threads import StartThread, start_daemon

_LONG_ANSWER = 0.05  # seconds that the loop may stand still for an answer, or twice that
_ROUND_LIMIT = 0.01  # seconds of answers between two rounds of the loop
_logger = logging.getLogger(__name__)


class Task(Protocol):
    """What waitress adds: a connection with a request."""

    def service(self) -> None: ...

    def cancel(self) -> None: ...


class LeaderFollowers:
    """A pool of threads after the leader/followers pattern.

    One thread, the leader, runs the loop and answers the requests itself: to hand each request to
    another thread takes longer than most answers, since threads compete for the interpreter lock.
    If an answer takes long, another thread becomes the leader.

    `threads` is the number of requests that can be answered at the same time: as many as asked
    for, or fewer if the system limits threads. If all of them take long, the thread that called
    `run` leads.
    """

    def __init__(self, threads: int, start_thread: StartThread = start_daemon) -> None:
        self._tasks: deque[Task] = deque()
        self._lock = threading.RLock()
        self._needs_leader = threading.Condition(self._lock)  # there is no leader
        self._needs_runner = threading.Condition(self._lock)  # nor a thread that could be one
        self._go_on: Callable[[float], bool] = lambda _wait: False
        self._wake: Callable[[], object] = lambda: None
        self._is_running = False
        self._leader: int | None = None
        self._answering_since: float | None = None  # of the leader; time.monotonic
        self._slow_answers = 0  # whose threads no longer lead
        self._is_over = False
        self._failure: BaseException | None = None
        self.threads = 0
        while self.threads < threads and start_thread(self._work, "server") is not None:
            self.threads += 1

    @property
    def is_leader(self) -> bool:
        """Whether this thread is the leader."""
        return self._leader == threading.get_ident()

    def add_task(self, task: Task) -> None:
        """Queue a task. A thread other than the leader has to wake the loop afterwards."""
        self._tasks.append(task)

    def run(self, go_on: Callable[[float], bool], wake: Callable[[], object]) -> None:
        """Have the threads call `go_on` again and again, until it returns False.

        It does one round of the loop, in which it may wait as many seconds as it is told, unless
        `wake` is called. Raises what `go_on` raises.
        """
        with self._lock:
            self._go_on, self._wake, self._is_running = go_on, wake, True
            self._needs_leader.notify_all()
        while not self._is_over:
            if self._is_runner_needed():
                self._lead_without_answering()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the threads, and drop what is not answered; waits for none."""
        with self._lock:
            self._is_over = True
            self._needs_leader.notify_all()
        while self._tasks:
            self._tasks.popleft().cancel()

    def _is_runner_needed(self) -> bool:
        """Whether this thread has become the leader; waits for a moment, or until it is needed."""
        with self._lock:
            if not self._is_over:
                self._needs_runner.wait(_LONG_ANSWER)
            self._replace_slow_leader()
            if self._is_over or self._leader is not None or self._has_followers():
                return False
            self._leader = threading.get_ident()
            return True

    def _lead_without_answering(self) -> None:
        while not self._is_over and self._go_on(1.0):
            with self._lock:
                if self._has_followers():
                    self._leader = None
                    self._needs_leader.notify()
                    return
        self._end()

    def _has_followers(self) -> bool:
        return self._slow_answers < self.threads

    def _work(self) -> None:
        while self._become_leader():
            try:
                self._lead()
            except BaseException as error:  # noqa: BLE001 - raised by `run`
                self._end(error)

    def _become_leader(self) -> bool:
        """Wait until there is no leader; False if it is over."""
        with self._lock:
            while not self._is_over and (self._leader is not None or not self._is_running):
                self._needs_leader.wait()
            self._leader = threading.get_ident()
            return not self._is_over

    def _lead(self) -> None:
        """Run the loop, until it is over, or another thread has become the leader."""
        while not self._is_over and self._go_on(0.0 if self._tasks else 1.0):
            until = time.monotonic() + _ROUND_LIMIT
            while self._tasks and time.monotonic() < until:
                if not self._answer(self._tasks.popleft()):
                    return
        self._end()

    def _answer(self, task: Task) -> bool:
        """Answer a request. Returns whether this thread is still the leader."""
        self._answering_since = time.monotonic()
        try:
            task.service()
        except BaseException as error:  # noqa: BLE001 - the server goes on
            _logger.error("the HTTP server failed: %s", describe_failure(error))
        with self._lock:
            if self.is_leader:
                self._answering_since = None
                return True
            self._slow_answers -= 1
        self._wake()  # the loop has to look at the connection again, and may have a task for us
        return False

    def _replace_slow_leader(self) -> None:
        """Let another thread go on with the loop if the leader's answer takes long."""
        since = self._answering_since
        if since is not None and time.monotonic() > since + _LONG_ANSWER:
            self._step_down()

    def _step_down(self) -> None:
        self._slow_answers += 1
        self._leader = self._answering_since = None
        condition = self._needs_leader if self._has_followers() else self._needs_runner
        condition.notify()

    def _end(self, failure: BaseException | None = None) -> None:
        with self._lock:
            self._failure = self._failure or failure
            self._is_over = True
            self._needs_leader.notify_all()
            self._needs_runner.notify()
