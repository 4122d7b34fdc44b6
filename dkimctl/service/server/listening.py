"""The sockets that the service listens on, and how clients reach them."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

from waitress.adjustments import Adjustments

from dkimctl.errors import UsageError

_BACKLOG = 1024  # connections that the system keeps until they are accepted
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only shown
_ADDRESSES = (
    "use --host 127.0.0.1 for this machine alone, or --host 0.0.0.0 for all its IPv4 addresses"
)


class Listening:
    """Sockets that listen on all addresses of a host name. Raises UsageError.

    `addresses` are those addresses, with their ports, and `local_url` is how this machine reaches
    them, over loopback, or None. `is_local`: other machines cannot.
    """

    def __init__(self, host: str, port: int) -> None:
        self.sockets: list[socket.socket] = []
        try:
            wanted: Any = Adjustments(host=host, port=port).listen
            for family, _, _, address in wanted:
                self.sockets.append(socket.create_server(address, family=family, backlog=_BACKLOG))
        except (OSError, ValueError) as error:
            self.close()
            raise _listening_error(host, port, error) from error
        names = (listening.getsockname() for listening in self.sockets)
        # With the zone of an address, such as fe80::1%eth0. IPv4 comes before IPv6.
        shown = (socket.getnameinfo(name, socket.NI_NUMERICHOST)[0] for name in names)
        ports = (listening.getsockname()[1] for listening in self.sockets)
        self.addresses = sorted(zip(shown, ports, strict=True))
        self.is_local = all(_is_loopback(address) for address, _ in self.addresses)
        self.local_url = _local_url(host, self.addresses)

    def close(self) -> None:
        for listening in self.sockets:
            listening.close()


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
