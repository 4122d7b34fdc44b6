"""check-dns follows aliases as far as resolvers do, and knows what a wildcard answers."""

from __future__ import annotations

import itertools

import pytest

from delegation import Host, Zone
from network import running
from published import name_of, register, txt

CHAINS = {"nine.test": 9, "eleven.test": 11, "thirteen.test": 13}
DOMAINS = (*CHAINS, "loop.test", "wild.test", "wildalias.test", "wildrecord.test")
LOOP = ("a.near.test", "b.far.test", "a.near.test")


def links(names) -> dict[str, str]:
    """The line of each alias in a chain, by name."""
    return {name: f"{name}. CNAME {target}.\n" for name, target in itertools.pairwise(names)}


@pytest.fixture
def network(cli, needs_tool, tmp_path):
    """Chains of aliases that go to and fro between two servers, a loop, and wildcards."""
    values = register(cli, *DOMAINS)
    lines = links([name_of("loop.test"), *LOOP])
    for domain, length in CHAINS.items():
        names = [f"{domain[:4]}{n}.{('near', 'far')[n % 2]}.test" for n in range(1, length + 1)]
        lines |= links([name_of(domain), *names])
        lines[names[-1]] = txt(names[-1], values[domain])
    lines["wild.test"] = '*.wild.test. TXT "v=spf1 -all"\n'
    lines["wildalias.test"] = "*.wildalias.test. CNAME any.wild.test.\n"
    lines["wildrecord.test"] = txt("*.wildrecord.test", values["wildrecord.test"])
    zones = [
        Zone(
            zone,
            ("ns2.test",) if zone == "far.test" else ("ns1.test",),
            "".join(line for name, line in lines.items() if f".{name}".endswith(f".{zone}")),
        )
        for zone in (*DOMAINS, "near.test", "far.test")
    ]
    hosts = [Host("ns1.test", ("127.0.0.2",)), Host("ns2.test", ("127.0.0.3",), "knotd")]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        yield network


@pytest.fixture
def check(cli, network):
    """The verdict and reason of check-dns by domain, and its exit status."""

    def run(*words: str):
        done, items = network.check_dns(cli, *words)
        return {name: (one["verdict"], one["reason"]) for name, one in items.items()}, done.status

    return run


def test_aliases_are_followed_as_far_as_unbound_follows_them(check, network):
    expected = {
        "nine.test": ("published", ""),
        "eleven.test": ("published", ""),
        "thirteen.test": (
            "malformed", "more than 11 aliases (CNAME) in a row, up to thir11.far.test",
        ),
        "loop.test": ("malformed", "its aliases (CNAME) are a loop, at a.near.test"),
    }  # fmt: skip
    assert check(*expected) == (expected, 1)
    for domain, (verdict, _) in expected.items():
        answer = network.run("dig", "+time=9", name_of(domain), "TXT").stdout
        assert ("status: NOERROR" in answer) == (verdict == "published"), answer


def test_what_a_wildcard_answers_is_missing_unless_it_is_the_record(check):
    wildcard = ("missing", "a wildcard answers there")
    expected = {"wild.test": wildcard, "wildalias.test": wildcard}
    assert check(*expected) == (expected, 1)
    assert check(*expected, "--expect-absent") == (expected, 0)
    assert check("wildrecord.test") == ({"wildrecord.test": ("published", "")}, 0)


def test_a_given_server_does_not_have_the_target_of_an_alias(check):
    reason = (
        "TXT s1._domainkey.nine.test: 127.0.0.2: "
        "its alias leads to nine1.far.test, outside of nine.test, the zone that this server has"
    )
    expected = {"nine.test": ("no answer", reason)}
    assert check("nine.test", "--server", "127.0.0.2") == (expected, 4)
