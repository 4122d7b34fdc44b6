"""Where a request comes from: the peer, or the client that trusted proxies name."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Self
from wsgiref.types import WSGIEnvironment

from dkimctl.errors import UsageError
from dkimctl.text.escaping import quoted

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNIX = "unix"
"""The address of peers at a UNIX socket, which have none."""

LOOPBACK: Sequence[Network] = (
    ipaddress.ip_network("127.0.0.0/8"),
    ipaddress.ip_network("::1/128"),
)

_MAX_HOPS = 20
_MAX_TEXT = 64  # characters of an address; an IPv6 address has at most 45


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """The IP addresses and networks in `texts`. Raises UsageError."""
    return tuple(map(_parse_network, texts))


def is_in(address: str, networks: Iterable[Network]) -> bool:
    """Whether an address of `peer_address` is in one of `networks`."""
    parsed = _parse_address(address)
    return parsed is not None and any(parsed in network for network in networks)


def peer_address(environ: WSGIEnvironment) -> str:
    """The IP address at the other end of the connection, or UNIX."""
    return _peer_as_text(environ.get("REMOTE_ADDR") or "")


class TrustedProxies:
    """The proxies whose X-Forwarded-For is believed; others cannot lie about their address."""

    def __init__(self, networks: Sequence[Network] = (), *, unix: bool = False) -> None:
        self._networks = networks
        self._unix = unix

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Self:
        """Those at these IP addresses, networks, or at `unix`. Raises UsageError."""
        return cls(parse_networks(text for text in texts if text != UNIX), unix=UNIX in texts)

    def client_address(self, environ: WSGIEnvironment) -> str:
        """The last address on the way to us that is not a trusted proxy's, or UNIX.

        It is the peer's if the header has anything but IP addresses there.
        """
        peer = hop = peer_address(environ)
        if not self._includes(peer):
            return peer
        hops = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")[-_MAX_HOPS:]
        for text in reversed(hops):
            parsed = _parse_address(text)
            if parsed is None:
                return peer
            hop = str(parsed)
            if not self._includes(hop):
                break
        return hop

    def _includes(self, address: str) -> bool:
        return self._unix if address == UNIX else is_in(address, self._networks)


def _parse_network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        raise UsageError(
            f"invalid address or network {quoted(text)}",
            hint="write an IP address or a network, such as 10.0.0.5 or 10.0.0.0/24",
        ) from None


def _parse_address(text: str) -> Address | None:
    return _parse_short(text) if len(text) <= _MAX_TEXT else None


@lru_cache(maxsize=1024)
def _peer_as_text(peer: str) -> str:
    address = _parse_address(peer)
    return UNIX if address is None else str(address)


@lru_cache(maxsize=1024)
def _parse_short(text: str) -> Address | None:
    """An address without its zone; an IPv4 address also where IPv6 sockets map it."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
