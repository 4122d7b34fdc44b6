"""TCP connections to a DNS server."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from dkimctl.errors import ServiceError
from dkimctl.text.addresses import Address
from dkimctl.text.escaping import printable

_MAX_READ = 1 << 16  # bytes at a time


class Timeouts(NamedTuple):
    """The longest waits, in seconds.

    To connect, for the next answer, for that to an update, and until a change that was accepted
    can be read.
    """

    connect: float = 5.0
    answer: float = 10.0
    update: float = 60.0
    change: float = 2.0


class ConnectionLost(Exception):
    """The server closed the connection, or did not answer in time; the text says which."""

    def __init__(self, *, is_timeout: bool) -> None:
        super().__init__("it does not answer" if is_timeout else "it closed the connection")
        self.is_timeout = is_timeout


class Connection:
    """Sends and receives messages, each after its length (RFC 1035 section 4.2.2)."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, messages: Sequence[bytes], timeout: float) -> None:
        """Send messages at once. Raises ConnectionLost."""
        self._socket.settimeout(timeout)
        with _translated():
            self._socket.sendall(b"".join(len(one).to_bytes(2) + one for one in messages))

    def receive(self, deadline: float) -> bytes:
        """The next message. Raises ConnectionLost, at the latest at the time.monotonic given."""
        while (message := self._take()) is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise ConnectionLost(is_timeout=True)
            self._socket.settimeout(remaining)
            with _translated():
                data = self._socket.recv(_MAX_READ)
            if not data:
                raise ConnectionLost(is_timeout=False)
            self._received += data
        return message

    def _take(self) -> bytes | None:
        end = 2 + int.from_bytes(self._received[:2])
        if len(self._received) < end:
            return None
        message = bytes(self._received[2:end])
        del self._received[:end]
        return message


class Connector:
    """Connects to a server; tries all addresses of its name, first the one that answered last."""

    def __init__(self, server: Address, timeout: float) -> None:
        self.server = server
        self._timeout = timeout
        self._latest: tuple[str, int] | None = None

    def connect(self) -> Connection:
        """Raises ServiceError."""
        failure: OSError | None = None
        for address in self._addresses():
            try:
                connected = socket.create_connection(address, self._timeout)
            except OSError as error:
                failure = error
                continue
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._latest = address
            return Connection(connected)
        raise ServiceError(
            f"cannot connect to the DNS server {self.server} over TCP: {_reason(failure)}",
            hint="check `server` in the config file, that the server runs, and that a firewall "
            "lets TCP pass",
        )

    def _addresses(self) -> list[tuple[str, int]]:
        try:
            found = socket.getaddrinfo(*self.server, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ServiceError(
                f"cannot find the address of the DNS server {self.server}: {_reason(error)}",
                hint="check `server` in the config file, or write its IP address",
            ) from None
        addresses = [(str(one[4][0]), int(one[4][1])) for one in found]
        return sorted(addresses, key=lambda address: address != self._latest)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise ConnectionLost(is_timeout=True) from None
    except OSError:
        raise ConnectionLost(is_timeout=False) from None


def _reason(error: Exception | None) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens at that address and port"
    return printable(getattr(error, "strerror", None) or str(error))
