"""A time limit on whole answers, however many reads they come in."""

from __future__ import annotations

import math
import socket
import threading
import time
from contextlib import suppress

_CLOSED = -1  # the number of a socket that is closed, or that TLS took over


class ResponseDeadline:
    """The connections of one thread, which waits for one answer at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._due = math.inf
        self._was_cut = False

    def add(self, connection: socket.socket) -> None:
        """Have one more connection, which the answers to come may use."""
        with self._lock:
            self._sockets = [sock for sock in self._sockets if sock.fileno() != _CLOSED]
            self._sockets.append(connection)

    def expect(self, due: float) -> None:
        """An answer is to be whole at `due` (monotonic seconds)."""
        with self._lock:
            self._due = due

    def finish(self) -> bool:
        """No answer is waited for any more. Whether it was cut off; this forgets it."""
        with self._lock:
            was_cut, self._was_cut, self._due = self._was_cut, False, math.inf
        return was_cut

    def cut_if_due(self, now: float) -> None:
        """End every connection if the answer should have been whole by `now`."""
        with self._lock:
            if now < self._due:
                return
            self._was_cut, self._due = True, math.inf
            for sock in self._sockets:
                # Not the method of a TLS socket: it would go on without TLS.
                with suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)


class DeadlineThread:
    """A thread that cuts lines at their due time, give or take a tenth of `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self._pause = min(timeout / 10, 1.0)
        self._lines: list[ResponseDeadline] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def line(self) -> ResponseDeadline:
        line = ResponseDeadline()
        self._lines.append(line)
        return line

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._pause):
            now = time.monotonic()
            for line in tuple(self._lines):
                line.cut_if_due(now)
