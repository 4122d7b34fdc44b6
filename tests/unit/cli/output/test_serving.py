"""What `serve` says of the addresses it listens on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from dkimctl.cli.output.serving import announce
from dkimctl.cli.output.streams import Reporter
from dkimctl.service.server.listening import Listening


class FakeListening(NamedTuple):
    addresses: Sequence[tuple[str, int]]
    local_url: str | None
    is_local: bool


def said(capsys, *listening: object, data: Path | None = None) -> str:
    announce(Reporter(), FakeListening(*listening), data)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_on_loopback(capsys):
    url = "http://127.0.0.1:8025"
    assert said(capsys, [("127.0.0.1", 8025)], url, True, data=Path("my data.db")) == (
        f"dkimctl: serving on {url} (both auth URL and base URL); press Ctrl-C to stop\n"
        "dkimctl: to create a client: dkimctl service client create --output secret.txt "
        "--data 'my data.db'\n"
        f"dkimctl: then log in: dkimctl login --auth-url {url} --base-url {url} --client-id ID\n"
    )


def test_on_both_addresses_of_localhost(capsys):
    addresses = [("127.0.0.1", 8025), ("::1", 8025)]
    text = said(capsys, addresses, "http://localhost:8025", True)
    assert "serving on http://localhost:8025 (both" in text
    assert "listening on 127.0.0.1:8025 and [::1]:8025\n" in text
    assert "warning" not in text


@pytest.mark.parametrize(
    ("address", "shown", "local_url"),
    [
        ("0.0.0.0", "0.0.0.0:8025 (all IPv4 addresses of this machine)", "http://127.0.0.1:8025"),
        ("::", "[::]:8025 (all IPv6 addresses of this machine)", "http://[::1]:8025"),
        ("192.0.2.1", "192.0.2.1:8025", None),
        ("fe80::1%eth0", "[fe80::1%eth0]:8025", None),
    ],
)
def test_on_a_network_there_is_a_warning(capsys, address, shown, local_url):
    text = said(capsys, [(address, 8025)], local_url, False)
    assert f"serving on {shown}; press Ctrl-C" in text
    assert "warning: this is plain HTTP" in text
    assert "hint: put a TLS proxy in front" in text
    proxied = "dkimctl login --auth-url https://PROXY --base-url https://PROXY --client-id ID"
    assert f"through the TLS proxy: {proxied}\n" in text
    assert (f"on this machine: dkimctl login --auth-url {local_url} " in text) is bool(local_url)


def test_it_is_known_who_can_reach_it() -> None:
    for host, is_local in (("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)):
        with closing(Listening(host, 0)) as listening:
            assert listening.is_local is is_local
            assert listening.local_url is not None
            assert all(port for _, port in listening.addresses)
