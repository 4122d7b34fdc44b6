"""What `serve` says: where it listens, who can use that, and how to log in."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dkimctl.cli.embedded_service import data_option
from dkimctl.cli.output.streams import Reporter

if TYPE_CHECKING:
    from dkimctl.service.location import Location
    from dkimctl.service.server.listening import Listening

_ALL = {4: "all IPv4 addresses of this machine", 6: "all IPv6 addresses of this machine"}
_PROXY = "https://PROXY"


def announce(reporter: Reporter, listening: Listening, data: Location | None) -> None:
    """Say where the service listens, and what to do next."""
    url, places = listening.local_url, [_place(*address) for address in listening.addresses]
    if listening.is_local:
        reporter.note(
            f"dkimctl: serving on {url} (both auth URL and base URL); press Ctrl-C to stop"
        )
        if len(places) > 1:
            reporter.note(f"dkimctl: listening on {' and '.join(places)}")
    else:
        reporter.note(f"dkimctl: serving on {' and '.join(places)}; press Ctrl-C to stop")
        reporter.warn(
            "this is plain HTTP, and other machines can reach it; clients refuse http:// URLs, "
            "except on this machine (loopback)",
            hint="put a TLS proxy in front, and give its https:// URL to clients",
            code="plain_http",
        )
    reporter.note(
        "dkimctl: to create a client: dkimctl service client create --output secret.txt"
        + data_option(data)
    )
    for how, its_url in _ways_to_log_in(url, is_local=listening.is_local):
        reporter.note(
            f"dkimctl: {how}: dkimctl login --auth-url {its_url} --base-url {its_url} "
            "--client-id ID"
        )


def _ways_to_log_in(url: str | None, *, is_local: bool) -> Sequence[tuple[str, str]]:
    if url is None:
        return [("then log in through the TLS proxy", _PROXY)]
    if is_local:
        return [("then log in", url)]
    return [("then log in on this machine", url), ("or through the TLS proxy", _PROXY)]


def _place(host: str, port: int) -> str:
    address = ipaddress.ip_address(host.partition("%")[0])
    shown = f"[{host}]:{port}" if address.version == 6 else f"{host}:{port}"
    return f"{shown} ({_ALL[address.version]})" if address.is_unspecified else shown
