"""Connections to the HTTP server, and which of them are dropped first when room is short."""

from __future__ import annotations

import errno
import json
import logging
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import IntEnum
from functools import partial
from heapq import nsmallest
from http import HTTPStatus
from io import BytesIO
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer
from waitress.task import ErrorTask

from dkimctl.service.http.addresses import peer_address
from dkimctl.service.server.leader_followers import LeaderFollowers
from dkimctl.service.server.parser import Parser

_FRESH = 2.0  # seconds in which a connection that just began something is not dropped
_SEND_BUFFER = 64 * 1024  # bytes
_NO_FILES = {errno.EMFILE, errno.ENFILE}
_logger = logging.getLogger(__name__)


class State(IntEnum):
    """What a connection does; when room is short, lower ones are dropped first."""

    SILENT = 0  # nothing was received yet
    IDLE = 1  # between requests
    TRANSFER = 2  # a request is being received, or its answer is being sent
    PROCESSING = 3  # never dropped


class JsonErrorTask(ErrorTask):
    """Answers requests that do not reach the application, in the shape of interface 7."""

    def execute(self) -> None:
        request: Any = self.request
        error = request.error
        if error.code != HTTPStatus.INTERNAL_SERVER_ERROR:  # logged already, with its cause
            address = peer_address({"REMOTE_ADDR": self.channel.addr[0]})
            fields = {"status": error.code, "address": address, "reason": error.body}
            _logger.warning("request refused", extra={"fields": fields})
        body = json.dumps({"message": f"{error.reason}: {error.body}"}).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers = [("Content-Type", "application/json")]
        self.content_length = len(body)
        request.headers["CONNECTION"] = "close"  # instead of what the client asked for
        self.write(body)


class Connection(HTTPChannel):
    """A connection, which closes if one request or answer takes more than `time_limit` seconds.

    waitress itself limits only the time between two bytes.
    """

    parser_class = Parser
    error_task_class = JsonErrorTask
    server: Any
    requests: list[Any]
    outbufs: list[Any]

    def __init__(self, time_limit: float, *args: Any, **options: Any) -> None:
        self._time_limit = time_limit
        self._doing: object = None  # changes whenever it begins something
        self._since = time.monotonic()
        self._was_served = False
        super().__init__(*args, **options)

    @property
    def state(self) -> State:
        if self.requests:
            return State.PROCESSING
        if self.request is not None or self.total_outbufs_len:
            return State.TRANSFER
        return State.IDLE if self._was_served else State.SILENT

    def is_unused(self, now: float) -> bool:
        """Whether it has no request. A new connection has some time to send one."""
        return self.state is State.IDLE or (self.state is State.SILENT and not self._is_fresh(now))

    @property
    def memory(self) -> int:
        """The octets that it holds of requests and answers."""
        receiving = [*self.requests] if self.request is None else [*self.requests, self.request]
        held: int = sum(one.header_bytes_received + one.body_bytes_received for one in receiving)
        return held + int(self.total_outbufs_len)

    def priority(self, now: float) -> tuple[bool, State, float]:
        """When room is short, the lowest is dropped first.

        Of those that just began something the oldest, or a newcomer would go before it could speak.
        """
        if self._is_fresh(now):
            return True, State.SILENT, self._since
        return False, self.state, self._since

    def _is_fresh(self, now: float) -> bool:
        return now < self._since + _FRESH

    def readable(self) -> bool:
        """Called in every iteration of the server's loop, at least once a second."""
        doing: object
        now, doing = time.monotonic(), self.state
        if doing is State.TRANSFER:
            doing = self.request or doing  # each request has its own time
        if doing is not self._doing:
            self._doing, self._since = doing, now
        elif now > self._since + self._time_limit and self.state is State.TRANSFER:
            self.will_close = True
            self._shut_down()
        return bool(super().readable())

    def service(self) -> None:
        """Answer a request."""
        self._was_served = True
        if self.server.is_stopping:
            self.requests[0].headers["CONNECTION"] = "close"
        super().service()

    def handle_expt(self) -> None:
        """Close for urgent data, which would wake the loop up again and again."""
        self.handle_close()

    def _flush_some(self, do_close: bool = True) -> bool:
        # Two threads may be here: in waitress, the loop sends without the lock.
        with self.outbuf_lock:
            flushed: bool = super()._flush_some(do_close)  # type: ignore[misc]
            buffer = self.outbufs[0].buf
            # waitress keeps what was sent, until the connection is closed.
            if self.connected and buffer is not None and buffer.file.tell() > buffer.remain:
                buffer.file = BytesIO(buffer.file.read())
        return flushed

    def _shut_down(self) -> None:
        """Make the loop notice the end at once, even if the client no longer reads."""
        if self.socket is not None:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


class Listener(BaseWSGIServer):
    """Accepts connections from a listening socket (TCP or Unix), and adds them to `map`.

    While it `is_full`, it accepts none. `is_starved`: the system gave no file for a connection.
    """

    is_full = is_starved = is_stopping = False
    channel_class: Any
    socket: Any
    trigger: Any
    _map: dict[int, Any]

    def __init__(
        self,
        app: Any,
        listening: socket.socket,
        threads: LeaderFollowers,
        adjustments: Adjustments,
        map: dict[int, Any],  # noqa: A002 - as waitress calls it
        time_limit: float,
    ) -> None:
        sockinfo = (listening.family, listening.type, listening.proto, listening.getsockname())
        dispatcher: Any = threads  # has the one method that waitress calls, add_task
        super().__init__(
            app, map, True, listening, dispatcher, adjustments, sockinfo, bind_socket=False
        )
        self.channel_class = partial(Connection, time_limit)
        self._threads = threads

    def pull_trigger(self) -> None:
        """Wake the loop, for a connection; if this thread runs it, it is awake."""
        if not self._threads.is_leader:
            super().pull_trigger()

    def getsockname(self) -> tuple[str, Any]:
        name = self.socket.getsockname()
        return ("unix", name) if isinstance(name, str | bytes) else name[:2]

    def fix_addr(self, addr: Any) -> Any:
        return addr or ("localhost", None)  # of a Unix socket

    def set_socket_options(self, conn: socket.socket) -> None:
        # The system would hold megabytes for each client that does not read.
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        if self.family != getattr(socket, "AF_UNIX", None):
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def readable(self) -> bool:
        return bool(super().readable()) and not self.is_full

    def maintenance(self, now: float) -> None:
        """Close idle connections, as waitress does; meanwhile other threads may close some."""
        channels: Any = self.active_channels  # a dict by file number; its stub says otherwise
        for one in list(channels.values()):
            if not one.requests and one.last_activity < now - self.adj.channel_timeout:
                one.will_close = True

    def handle_accept(self) -> None:
        """Accept what waits: one at a time while there are few, so that processes share them."""
        for _ in range(1 + len(self._map) // 64):
            try:
                accepted = self.accept()
                if accepted is None:
                    return
                connection, address = accepted
                self.set_socket_options(connection)
                self.channel_class(
                    self, connection, self.fix_addr(address), self.adj, map=self._map
                )
            except OSError as error:  # such as a client that is gone already
                self.is_starved = error.errno in _NO_FILES
                return

    def close(self) -> None:
        """Accept no more; the trigger stays, for connections that are left."""
        self.is_stopping = True
        super(BaseWSGIServer, self).close()


def useless(connections: Iterable[Connection], excess: int) -> list[Connection]:
    """The `excess` ones to drop first. Those whose request is being processed are left out."""
    now = time.monotonic()
    droppable = (one for one in connections if one.state is not State.PROCESSING)
    return nsmallest(excess, droppable, key=lambda one: one.priority(now))


def largest(connections: Iterable[Connection], most: int) -> Iterator[Connection]:
    """Those to drop until the others hold at most `most` octets, the largest first."""
    sizes = [(one.memory, one) for one in connections]
    excess = sum(size for size, _ in sizes) - most
    if excess <= 0:
        return
    for size, one in sorted(sizes, key=lambda pair: -pair[0]):
        if excess > 0 and one.state is not State.PROCESSING:
            excess -= size
            yield one
