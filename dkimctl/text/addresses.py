"""Addresses of DNS servers."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.text.escaping import quoted

PORT = 53

_WITH_PORT = r"\[([^\]]*)\](?::([0-9]{1,5}))?|([^:]*):([0-9]{1,5})"
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST_NAME = rf"{_LABEL}(?:\.{_LABEL})*\.?"


class Address(NamedTuple):
    """An IP address, or the name of a host, and a port."""

    host: str
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.host if self.port == PORT else f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[::1]:5353`. Raises UsageError."""
    if address := _ip_address(text):
        return address
    raise UsageError(
        f"invalid DNS server address {quoted(text)}",
        hint="write an IP address, such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353",
    )


def parse_server(text: str) -> Address:
    """Parse what `parse_address` does, or the name of a host: `ns1.example.com:5353`.

    The name is in lower case, without trailing dot. Raises UsageError, which does not quote the
    text: it may be a URL with a password.
    """
    if address := _ip_address(text) or _named_host(text):
        return address
    raise UsageError(
        "invalid DNS server",
        hint="write an IP address or a host name, such as 192.0.2.1, [2001:db8::1]:5353 or "
        "ns1.example.com",
    )


def _ip_address(text: str) -> Address | None:
    host, port = _split(text)
    try:
        is_valid = 0 < port < 1 << 16 and host.isprintable()  # a zone may be any text
        return Address(str(ipaddress.ip_address(host)), port) if is_valid else None
    except ValueError:
        return None


def _named_host(text: str) -> Address | None:
    host, port = _split(text.lower())
    name = host.removesuffix(".")
    is_number = name.rpartition(".")[2].isdigit()  # the end of a mistyped IPv4 address
    if len(name) > 253 or is_number or not re.fullmatch(_HOST_NAME, host):  # octets
        return None
    return Address(name, port) if 0 < port < 1 << 16 else None


def _split(text: str) -> tuple[str, int]:
    """The host, without brackets, and the port, which may be out of range."""
    if match := re.fullmatch(_WITH_PORT, text):
        return match[1] or match[3] or "", int(match[2] or match[4] or PORT)
    return text, PORT
