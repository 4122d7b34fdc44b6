"""The service over HTTP, on waitress."""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.server import MultiSocketServer, TcpWSGIServer, create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher

from dkimctl.errors import ThreadLimitError, UsageError
from dkimctl.service.server.parser import Parser

# The limits of waitress. That of the app is lower, so that a body slightly too large is answered
# with the reason; a far larger one is cut off.
MAX_BODY = 1280 * 1024  # bytes
MAX_HEAD = 16 * 1024  # bytes; a bearer token has about 1,000

TIME_LIMIT = 30.0  # seconds to receive a request, and to send its answer
_IDLE_LIMIT = 60  # seconds between requests
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only shown
_ADDRESSES = (
    "use --host 127.0.0.1 for this machine alone, or --host 0.0.0.0 for all its IPv4 addresses"
)
_MAX_CONNECTIONS = 200  # with a body in memory each: 250 MiB


def hang_up() -> NoReturn:
    """Called by the application instead of answering: closes the connection without a byte."""
    raise ClientDisconnected


class Server:
    """A listening server; `run` serves until SystemExit or Ctrl-C.

    `addresses` are those it listens on, with their ports, and `local_url` is how this machine
    reaches it, over loopback, or None. `is_local`: other machines cannot.

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
                clear_untrusted_proxy_headers=False,  # the app decides whom to trust
                max_request_header_size=MAX_HEAD,
                max_request_body_size=MAX_BODY,
                inbuf_overflow=2 * MAX_BODY,  # bodies never go to disk, which may be full
                channel_timeout=_IDLE_LIMIT,
                connection_limit=_MAX_CONNECTIONS,
                asyncore_use_poll=hasattr(select, "poll"),  # select() is limited to 1,024 files
            )
        except (OSError, ValueError) as error:
            raise _listening_error(host, port, error) from error
        self.threads = start_threads(self._server.task_dispatcher, threads)
        if not self.threads:
            self.close()
            raise ThreadLimitError
        for listener in dispatchers.values():
            if isinstance(listener, TcpWSGIServer):
                channel: Any = partial(_TimeLimitedChannel, time_limit)
                listener.channel_class = channel
        logging.getLogger("waitress").setLevel(logging.ERROR)  # it warns of every long queue
        self.addresses = self._listening_addresses()
        self.is_local = all(_is_loopback(address) for address, _ in self.addresses)
        self.local_url = _local_url(host, self.addresses)

    def run(self) -> None:
        self._server.run()

    def close(self) -> None:
        self._server.close()

    def _listening_addresses(self) -> list[tuple[str, int]]:
        server: Any = self._server
        if isinstance(server, MultiSocketServer):
            listening = sorted(set(server.effective_listen))  # IPv4 before IPv6
        else:
            listening = [(server.effective_host, server.effective_port)]
        return [(host, int(port)) for host, port in listening]


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _local_url(host: str, addresses: Sequence[tuple[str, int]]) -> str | None:
    """The URL at loopback. Clients know no name of it but localhost."""
    named = host.lower() == "localhost" and len({port for _, port in addresses}) == 1
    for address, port in addresses:
        name = _LOOPBACK.get(address, address)
        if _is_loopback(name):
            name = f"[{name}]" if ":" in name else name
            return f"http://{'localhost' if named else name}:{port}"
    return None


def _listening_error(host: str, port: int, error: OSError | ValueError) -> UsageError:
    where = f"cannot listen on {host} port {port}: "
    if isinstance(error, ValueError):  # waitress could not resolve it
        return UsageError(f"{where}there is no host of this name", hint=_ADDRESSES)
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"{where}another program uses this port",
            hint="stop that program, or choose another port with --port; 0 picks a free one",
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"{where}this machine has no such address", hint=_ADDRESSES)
    if isinstance(error, PermissionError):
        return UsageError(
            f"{where}the system does not allow it",
            hint="choose a port from 1024 on with --port; those below are for administrators",
        )
    return UsageError(f"{where}{error.strerror or error}", hint=_ADDRESSES)


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
