"""check-dns tells why servers have another record, or none, and is not taken in by luck."""

from __future__ import annotations

import sys

import pytest

from delegation import Host, Zone
from network import running
from odd_servers import __file__ as odd_servers
from published import published, register

UPSTREAM = "127.0.0.2"
ODD = {"flapping": "127.0.1.1"}


@pytest.fixture
def network(cli, needs_tool, tmp_path):
    """Zones whose records are all right, at servers with odd behaviour."""
    names = [f"{name}.example" for name in ODD]
    values = register(cli, *names)
    hosts = [
        Host("upstream.test", (UPSTREAM,), also=names),
        *(Host(f"{name}.test", (address,), program="") for name, address in ODD.items()),
    ]
    zones = [
        Zone(
            f"{name}.example",
            (f"{name}.test",),
            published({f"{name}.example": values[f"{name}.example"]}),
        )
        for name in ODD
    ]
    (directory := tmp_path / "network").mkdir()
    with running(directory, needs_tool, hosts=hosts, zones=zones) as network:
        odd = [f"{address}={name}" for name, address in ODD.items()]
        network.start("odd", sys.executable, odd_servers, UPSTREAM, *odd)
        network.wait_for("cat", "odd.log", shows="ready")
        yield network


def test_one_good_look_after_a_bad_one_does_not_end_the_wait(cli, network):
    words = ("flapping.example", "--wait")
    done, items = network.check_dns(cli, *words, "8s")
    assert (done.status, items["flapping.example"]["verdict"]) == (1, "missing")
