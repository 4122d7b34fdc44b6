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
from waitress.task import ErrorTask

from dkimctl.errors import UsageError
from dkimctl.service.parser import Parser

# What waitress takes in before the app sees a request; the app's own limit is lower, so that it
# answers what is a little too much and the client hears why: what is far too much is cut off.
MAX_BODY = 1280 * 1024  # bytes
MAX_HEAD = 16 * 1024  # bytes; a bearer token has about 1,000

TIME_LIMIT = 30.0  # seconds for a request to arrive, and for its answer to be taken
_IDLE_LIMIT = 60  # seconds between requests
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}  # noqa: S104 - for who connects
_MAX_CONNECTIONS = 200  # each may have a body in memory: 250 MiB, and none of it on disk


def hang_up() -> NoReturn:
    """For an application to call in place of an answer: the connection ends without a byte."""
    raise ClientDisconnected


class Server:
    """A listening server. `url` is its address; `run` serves until SystemExit or Ctrl-C.

    It ends a connection whose request takes longer than `time_limit` seconds to arrive, or whose
    answer takes longer to be taken, however many bytes trickle.
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
                threads=threads,
                ident=None,
                clear_untrusted_proxy_headers=True,
                max_request_header_size=MAX_HEAD,
                max_request_body_size=MAX_BODY,
                inbuf_overflow=2 * MAX_BODY,  # never: a full disk is to stop nobody
                channel_timeout=_IDLE_LIMIT,
                connection_limit=_MAX_CONNECTIONS,
                asyncore_use_poll=hasattr(select, "poll"),  # select() knows no file above 1,023
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot listen on {host} port {port}: {error}",
                hint="free the port or give another one with --port",
            ) from error
        for listener in dispatchers.values():
            if isinstance(listener, TcpWSGIServer):
                bounded: Any = partial(_BoundedChannel, time_limit)
                listener.channel_class = bounded
        logging.getLogger("waitress").setLevel(logging.ERROR)  # a long queue is no news
        if host == "*" or port == 0:  # each address then has a port of its own
            host, port = self._first_address()
        name = _HERE.get(host, host).strip("[]")
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


class _JsonErrorTask(ErrorTask):
    """Answers what does not reach the application, in the shape that interface 7 has."""

    def execute(self) -> None:
        request: Any = self.request
        error = request.error
        body = json.dumps({"message": f"{error.reason}: {error.body}"}).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers = [("Content-Type", "application/json")]
        self.content_length = len(body)
        request.headers["CONNECTION"] = "close"  # whatever it asked for
        self.write(body)


class _BoundedChannel(HTTPChannel):
    """A connection that ends when what is on its way takes too long.

    waitress itself bounds the time between two bytes alone.
    """

    parser_class = Parser
    error_task_class = _JsonErrorTask

    def __init__(self, time_limit: float, *args: Any, **options: Any) -> None:
        self._time_limit = time_limit
        self._on_its_way: object = None
        self._due = 0.0
        super().__init__(*args, **options)

    def readable(self) -> bool:
        """Asked at each turn of the server's loop, once a second at least."""
        # A request that is not whole yet, or else an answer.
        now, on_its_way = time.monotonic(), self.request or bool(self.total_outbufs_len)
        if on_its_way is not self._on_its_way:
            self._on_its_way, self._due = on_its_way, now + self._time_limit
        elif on_its_way and now > self._due:
            self.will_close = True
            self._cut()
        return bool(super().readable())

    def _cut(self) -> None:
        """Have the loop hear of the end at once, also where the other side takes no byte more."""
        if self.socket is not None:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
