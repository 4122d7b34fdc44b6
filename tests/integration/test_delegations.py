"""check-dns asks the servers that resolvers ask: those of the delegation, not only of the zone."""

from __future__ import annotations

import functools

import pytest

from delegation import ROOT_HOST, Host, Zone
from network import running
from published import name_of, register, txt

DOMAINS = ("right.test", "moved.test", "glue.test", "below.test")


@pytest.fixture
def network(cli, needs_tool, tmp_path):
    """The old server has no records; the zones above still name it, or its address."""
    values = register(cli, *DOMAINS)
    lines = {domain: txt(name_of(domain), value) for domain, value in values.items()}
    below = "_domainkey.below.test"
    old_zones = ("moved.test", "glue.test", below)
    hosts = [
        Host("new.test", ("127.0.0.2",)),
        Host("old.test", ("127.0.0.3",), "knotd", old_zones, records=dict.fromkeys(old_zones, "")),
        Host("ns.glue.test", ("127.0.0.4",), "named"),
    ]
    new, old_glue = ("new.test",), {"ns.glue.test": ("127.0.0.3",)}
    zones = [
        Zone("right.test", new, lines["right.test"]),
        Zone("moved.test", new, lines["moved.test"], delegated_to=("new.test", "old.test")),
        Zone("glue.test", ("ns.glue.test",), lines["glue.test"], glue=old_glue),
        Zone("below.test", ("ns.glue.test",)),
        Zone(below, new, lines["below.test"], delegated_to=("old.test",)),
    ]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        yield network


@pytest.fixture
def check(cli, network):
    return functools.partial(network.check_dns, cli)


def findings(item) -> dict[str, str]:
    return {one["server"]: one["verdict"] for one in item["servers"]}


def test_servers_of_the_delegation_are_asked_as_well(check):
    done, items = check()
    assert done.status == 1, done.err
    new, old = "new.test (127.0.0.2)", "old.test (127.0.0.3), only in the delegation"
    assert {domain: item["verdict"] for domain, item in items.items()} == {
        "right.test": "published",
        "moved.test": "inconsistent",
        "glue.test": "inconsistent",
        "below.test": "inconsistent",
    }
    assert findings(items["right.test"]) == {new: "published"}
    assert findings(items["moved.test"]) == {new: "published", old: "missing"}
    assert findings(items["glue.test"]) == {
        "ns.glue.test (127.0.0.4)": "published",
        "ns.glue.test (127.0.0.3), only in the delegation": "missing",
    }
    assert findings(items["below.test"]) == {
        f"{new}, only in the zone's own NS records": "published",
        old: "missing",
    }
    assert old in items["moved.test"]["reason"]


def test_a_delegation_that_cannot_be_read_is_no_verdict(check, network):
    check("right.test")
    network.stop(ROOT_HOST)
    done, items = check("right.test")
    assert (done.status, items["right.test"]["verdict"]) == (0, "published")
    assert "the delegation of right.test is not known: " in items["right.test"]["reason"]
