"""The service over HTTP, on waitress."""

from __future__ import annotations

import json
import logging
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.server import MultiSocketServer, TcpWSGIServer, create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher

from dkimctl.errors import ThreadLimitError, UsageError
from dkimctl.service.parser import Parser

# The limits of waitress. That of the app is lower, so that a body slightly too large is answered
# with the reason; a far larger one is cut off.
MAX_BODY = 1280 * 1024  # bytes
MAX_HEAD = 16 * 1024  # bytes; a bearer token has about 1,000

TIME_LIMIT = 30.0  # seconds to receive a request, and to send its answer
_IDLE_LIMIT = 60  # seconds between requests
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}  # noqa: S104 - only shown
_MAX_CONNECTIONS = 200  # with a body in memory each: 250 MiB


def hang_up() -> NoReturn:
    """Called by the application instead of answering: closes the connection without a byte."""
    raise ClientDisconnected


class Server:
    """A listening server. `url` is its address; `run` serves until SystemExit or Ctrl-C.

    It closes a connection if receiving the request, or sending the answer, takes more than
    `time_limit` seconds in total. `threads` is how many there are, at most as many as asked for.
    Raises UsageError, and ThreadLimitError if there are none.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        host: str,
        port: int,
        threads: int,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        dispatchers: dict[int, Any] = {}
        try:
            self._server = create_server(
                app,
                map=dispatchers,
                host=host,
                port=port,
                threads=0,  # see start_threads
                ident=None,
                clear_untrusted_proxy_headers=True,
                max_request_header_size=MAX_HEAD,
                max_request_body_size=MAX_BODY,
                inbuf_overflow=2 * MAX_BODY,  # bodies never go to disk, which may be full
                channel_timeout=_IDLE_LIMIT,
                connection_limit=_MAX_CONNECTIONS,
                asyncore_use_poll=hasattr(select, "poll"),  # select() is limited to 1,024 files
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot listen on {host} port {port}: {error}",
                hint="free the port, or choose another one with --port",
            ) from error
        self.threads = start_threads(self._server.task_dispatcher, threads)
        if not self.threads:
            self.close()
            raise ThreadLimitError
        for listener in dispatchers.values():
            if isinstance(listener, TcpWSGIServer):
                channel: Any = partial(_TimeLimitedChannel, time_limit)
                listener.channel_class = channel
        logging.getLogger("waitress").setLevel(logging.ERROR)  # it warns of every long queue
        if host == "*" or port == 0:  # then each address has its own port
            host, port = self._first_address()
        name = _LOOPBACK.get(host, host).strip("[]")
        self.url = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def run(self) -> None:
        self._server.run()

    def close(self) -> None:
        self._server.close()

    def _first_address(self) -> tuple[str, int]:
        server: Any = self._server
        if isinstance(server, MultiSocketServer):
            host, port = min(server.effective_listen)  # 0.0.0.0 rather than ::
        else:
            host, port = server.effective_host, server.effective_port
        return host, int(port)


def start_threads(dispatcher: ThreadedTaskDispatcher, most: int) -> int:
    """Start up to `most` worker threads; returns how many the system allows."""
    for number in range(most):
        try:
            dispatcher.set_thread_count(number + 1)
        except RuntimeError:  # it counts the thread already
            dispatcher.threads.discard(number)
            return number
    return most


class _JsonErrorTask(ErrorTask):
    """Answers requests that do not reach the application, in the shape of interface 7."""

    def execute(self) -> None:
        request: Any = self.request
        error = request.error
        body = json.dumps({"message": f"{error.reason}: {error.body}"}).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers = [("Content-Type", "application/json")]
        self.content_length = len(body)
        request.headers["CONNECTION"] = "close"  # instead of what the client asked for
        self.write(body)


class _TimeLimitedChannel(HTTPChannel):
    """A connection that closes if one request or answer takes too long.

    waitress itself limits only the time between two bytes.
    """

    parser_class = Parser
    error_task_class = _JsonErrorTask

    def __init__(self, time_limit: float, *args: Any, **options: Any) -> None:
        self._time_limit = time_limit
        self._transfer: object = None  # the request being received, or whether an answer is sent
        self._deadline = 0.0
        super().__init__(*args, **options)

    def readable(self) -> bool:
        """Called in every iteration of the server's loop, at least once a second."""
        now, transfer = time.monotonic(), self.request or bool(self.total_outbufs_len)
        if transfer is not self._transfer:
            self._transfer, self._deadline = transfer, now + self._time_limit
        elif transfer and now > self._deadline:
            self.will_close = True
            self._shut_down()
        return bool(super().readable())

    def _shut_down(self) -> None:
        """Make the loop notice the end at once, even if the client no longer reads."""
        if self.socket is not None:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
