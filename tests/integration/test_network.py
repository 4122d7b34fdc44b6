"""The network that other tests use is as they describe it: delegations, DNSSEC, changes."""

from __future__ import annotations

import pytest

from delegation import Host, Security, Zone
from network import running

HOSTS = [
    Host("ns1.example.com", ("127.0.0.2",), "nsd", records={"example.org": 'a TXT "old"\n'}),
    Host("ns2.test", ("127.0.0.3", "fd53::3"), "knotd"),
    Host("ns3.test", ("127.0.0.4",), "named", updates=True),
    Host("old.test", ("127.0.0.5",), "nsd"),
]
TXT = 'a TXT "new"\n'
ZONES = [
    Zone("example.com", ("ns1.example.com",), TXT),
    Zone("example.org", ("ns2.test",), TXT, delegated_to=("ns1.example.com",)),
    Zone("example.net", ("ns.example.net",), TXT, glue={"ns.example.net": ("127.0.0.5",)}),
    Zone("updated.test", ("ns3.test",), TXT),
    Zone("below.example.com", ("ns2.test",), TXT, security=Security.SECURE),
    Zone("expired.test", ("ns2.test",), TXT, security=Security.EXPIRED),
    Zone("wrong.test", ("ns2.test",), TXT, security=Security.WRONG_DS),
]


@pytest.fixture
def network(needs_tool, tmp_path):
    hosts = [
        *HOSTS[:3],
        Host("ns.example.net", ("127.0.0.6",), "nsd"),
        HOSTS[3]._replace(also=("example.org",), records={"example.org": 'a TXT "older"\n'}),
    ]
    hosts[0] = hosts[0]._replace(also=("example.org",))
    with running(tmp_path, needs_tool, hosts=hosts, zones=ZONES) as network:
        yield network


@pytest.fixture
def ask(network):
    """The answer of the resolver to a question, as dig shows it: status, flags and records."""

    def ask(name: str, *words: str) -> str:
        done = network.run("dig", *words, name, "TXT")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return ask


def test_the_resolver_follows_the_delegations_from_the_root(ask, network):
    assert '"new"' in ask("a.example.com")
    assert '"new"' in ask("a.updated.test")
    assert '"old"' in ask("a.example.org")  # delegated to a server that has the zone no longer
    assert "status: SERVFAIL" in ask("a.example.net")  # the glue is the address of another server
    assert '"new"' in ask("a.example.net", "@127.0.0.6")
    assert '"new"' in ask("a.example.org", "@fd53::3")
    assert "127.0.0.53" in network.run("dig", "+trace", "a.example.com", "@127.0.0.1").stdout


def test_the_resolver_validates(ask):
    for name, secure in (("a.below.example.com", True), ("a.updated.test", False)):
        answer = ask(name, "+adflag")
        assert '"new"' in answer
        assert (" ad;" in answer) is secure, answer
    for name in ("a.expired.test", "a.wrong.test"):
        assert "status: SERVFAIL" in ask(name)
        assert '"new"' in ask(name, "+cd")


def test_zones_change_while_the_network_runs(ask, network):
    assert '"old"' in ask("a.example.org")
    network.change(
        ZONES[0]._replace(records='a TXT "newer"\n'),
        ZONES[1]._replace(delegated_to=("old.test",)),
        ZONES[5]._replace(security=Security.SECURE),
    )
    assert '"newer"' in ask("a.example.com")
    assert '"older"' in ask("a.example.org")
    assert " ad;" in ask("a.expired.test", "+adflag")


def test_a_host_takes_signed_updates(ask, network):
    script = 'server 127.0.0.4\nupdate add b.updated.test. 60 TXT "added"\nsend\n'
    assert network.run("nsupdate", stdin=script).returncode != 0
    done = network.run("nsupdate", "-k", str(network.key_file), stdin=script)
    assert (done.returncode, done.stderr) == (0, "")
    network.change(ZONES[0]._replace(records='a TXT "newer"\n'))
    assert '"added"' in ask("b.updated.test")


def test_a_server_can_be_stopped_and_started(ask, network):
    network.stop("ns1.example.com")
    assert "status: SERVFAIL" in ask("a.example.com")
    network.start_host("ns1.example.com")
    assert '"new"' in ask("a.example.com", "@127.0.0.2")
