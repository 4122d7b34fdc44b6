"""The service over HTTP, on waitress."""

from __future__ import annotations

import logging
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments

from dkimctl.errors import ThreadLimitError
from dkimctl.service.failures import describe_failure
from dkimctl.service.server.connections import Connection, Listener, State, largest, useless
from dkimctl.service.server.leader_followers import LeaderFollowers

# The limits of waitress. That of the app is lower, so that a body slightly too large is answered
# with the reason; a far larger one is cut off.
MAX_BODY = 1280 * 1024  # bytes
MAX_HEAD = 16 * 1024  # bytes; a bearer token has about 1,000

TIME_LIMIT = 30.0  # seconds to receive a request, and to send its answer
STOP_LIMIT = 30.0  # seconds in which requests are still answered when the server is to stop
_IDLE_LIMIT = 60  # seconds between requests
_MAX_CONNECTIONS = 1000
_MAX_MEMORY = 64 * 1024 * 1024  # bytes of requests and answers, of all connections together
_CHECK_INTERVAL = 0.02  # seconds; in that time, clients can send a few megabytes
_OTHER_FILES = 96  # that the process may need: connections to the database, a burst of newcomers
_FEWEST = 16  # connections, however few files the system allows
_SELECT_LIMIT = 512  # sockets that select() can watch on Windows
_UNLIMITED = 1 << 40


_logger = logging.getLogger(__name__)


class Server:
    """A server on listening `sockets`.

    It closes a connection if receiving the request, or sending the answer, takes more than
    `time_limit` seconds in total. When room is short (connections, files or memory), it closes
    those that are of least use, never one whose request is being processed. `threads` is the
    number of requests that it answers at the same time, at most as many as asked for. Raises
    ThreadLimitError if the system allows none.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        sockets: Sequence[socket.socket],
        threads: int,
        *,
        time_limit: float = TIME_LIMIT,
        max_connections: int = _MAX_CONNECTIONS,
    ) -> None:
        self._map: dict[int, Any] = {}
        self._deadline: float | None = None  # of stopping
        self._next_check = 0.0
        self._is_stopping = self._is_closed = False
        self._wakeable = threading.RLock()  # a signal handler may come in the middle
        self._beat: Callable[[], object] = lambda: None
        self._pool = LeaderFollowers(threads)
        self.threads = self._pool.threads
        if not self.threads:
            self._pool.close()
            raise ThreadLimitError
        self._max_connections = min(max_connections, _max_files())
        self._listeners = [
            Listener(app, listening, self._pool, _adjustments(), self._map, time_limit)
            for listening in sockets
        ]
        logger = logging.getLogger("waitress")
        logger.setLevel(logging.ERROR)  # it warns of every long queue
        logger.addFilter(_without_request)

    def run(self, beat: Callable[[], object] = lambda: None) -> None:
        """Serve until `stop`; then answer what was asked, for up to STOP_LIMIT seconds.

        `beat` is called at least once a second, in any thread.
        """
        self._beat = beat
        try:
            self._pool.run(self._go_on, self._pull_trigger)
        finally:
            self.close()

    def stop(self) -> None:
        """Have `run` end, at once if this is the second time. For signal handlers."""
        now = time.monotonic()
        self._deadline = now + STOP_LIMIT if self._deadline is None else now
        self._pull_trigger()

    def close(self) -> None:
        """Close all connections at once; requests in progress are not waited for."""
        self._pool.close()
        self._pull_trigger()
        with self._wakeable:
            self._is_closed = True
        wasyncore.close_all(self._map)

    def _pull_trigger(self) -> None:
        """Wake the loop. A signal handler may run in the thread of the loop, while it waits."""
        with self._wakeable:
            if not self._is_closed:
                self._listeners[0].trigger.pull_trigger()

    def _go_on(self, wait: float) -> bool:
        """One round of the loop, which waits up to `wait` seconds; False after the last one."""
        self._beat()
        if self._deadline is None:
            self._serve_once(wait)
            return True
        if not self._is_stopping:
            self._stop_listening()
            wait = 0  # those that are connected may have sent a request
        self._serve_once(wait)
        return self._close_unused() and time.monotonic() < self._deadline

    def _stop_listening(self) -> None:
        self._is_stopping = True
        for listener in self._listeners:
            for _ in range(_FEWEST):  # that are connected already
                listener.handle_accept()
            listener.close()

    def _serve_once(self, wait: float) -> None:
        self._make_room()
        wasyncore.loop(timeout=wait, use_poll=hasattr(select, "poll"), map=self._map, count=1)

    def _connections(self) -> list[Connection]:
        everything = list(self._map.values())  # a copy: another thread may close a connection
        return [one for one in everything if isinstance(one, Connection)]

    def _make_room(self) -> None:
        now = time.monotonic()
        is_short = len(self._map) > self._max_connections or self._listeners[0].is_full
        if not is_short and now < self._next_check:
            return
        self._next_check = now + _CHECK_INTERVAL
        connections = self._connections()
        excess = len(connections) - self._max_connections
        is_starved = any(listener.is_starved for listener in self._listeners)
        if is_starved:
            excess = max(excess, _FEWEST)
        if excess > 0:
            for connection in useless(connections, excess):
                connection.handle_close()
        for connection in largest(self._connections(), _MAX_MEMORY):
            connection.handle_close()
        processing = sum(one.state is State.PROCESSING for one in connections)
        # Or newcomers would only replace one another; now they wait in the system's queue.
        is_full = processing >= self._max_connections - self._max_connections // 4 or (
            is_starved and processing == len(connections)
        )
        for listener in self._listeners:
            listener.is_full, listener.is_starved = is_full, False

    def _close_unused(self) -> bool:
        """Close connections without a request; whether there are others."""
        now, connections = time.monotonic(), self._connections()
        for connection in connections:
            if connection.is_unused(now):
                connection.handle_close()
        return any(connection.connected for connection in connections)


def _adjustments() -> Adjustments:
    return Adjustments(
        ident=None,
        clear_untrusted_proxy_headers=False,  # the app decides whom to trust
        max_request_header_size=MAX_HEAD,
        max_request_body_size=MAX_BODY,
        # Nothing goes to disk, which may be full, and no thread waits for a client to read. What
        # is held in memory is limited by _MAX_MEMORY.
        inbuf_overflow=_UNLIMITED,
        outbuf_overflow=_UNLIMITED,
        outbuf_high_watermark=_UNLIMITED,
        channel_timeout=_IDLE_LIMIT,
        connection_limit=_UNLIMITED,
    )


def _max_files() -> int:
    """How many connections the system allows."""
    if sys.platform == "win32":
        return _SELECT_LIMIT - _OTHER_FILES
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_CONNECTIONS if limit < 0 else max(limit - _OTHER_FILES, _FEWEST)


def _without_request(_record: logging.LogRecord) -> bool:
    """Filter what waitress logs: its messages and tracebacks quote requests."""
    failure = sys.exception()
    _logger.error("the HTTP server failed%s", f": {describe_failure(failure)}" if failure else "")
    return False
