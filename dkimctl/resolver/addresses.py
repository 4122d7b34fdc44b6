"""Where DNS servers are."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from dkimctl.errors import ServiceError, UsageError
from dkimctl.text.escaping import printable
from dkimctl.text.wording import shown

PORT = 53


class Address(NamedTuple):
    """An IP address and a port."""

    host: str
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.host if self.port == PORT else f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """An address as people write it: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1`, `[::1]:5353`.

    Raises UsageError.
    """
    with_port = re.fullmatch(r"\[([^\]]*)\](?::([0-9]{1,5}))?|([^:]*):([0-9]{1,5})", text)
    host, port = text, str(PORT)
    if with_port:
        host, port = with_port[1] or with_port[3] or "", with_port[2] or with_port[4] or port
    try:
        address = Address(str(ipaddress.ip_address(host)), int(port))
    except ValueError:
        address = None
    if address is None or not 0 < address.port < 1 << 16:
        raise UsageError(
            f"{shown(text)} is no address of a DNS server",
            hint="write its IP address, such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353",
        )
    return address


def system_nameservers() -> list[Address]:
    """The resolvers that this machine is set up with. Raises ServiceError where there is none."""
    import dns.exception
    import dns.resolver

    try:
        found = dns.resolver.Resolver()
        return [parse_address(str(server)) for server in found.nameservers]
    except (dns.exception.DNSException, OSError, ValueError, UsageError) as error:
        raise ServiceError(
            f"this machine is set up with no usable DNS resolver: {printable(str(error))}",
            hint="check /etc/resolv.conf or the network settings, or name servers yourself "
            "(check-dns: --server IP; DNS output: --zone ZONE)",
        ) from None
