"""check-dns finds zones and records that a validating resolver rejects."""

from __future__ import annotations

import dns.rdatatype
import dns.zone
import pytest

from delegation import Host, Security, Zone
from network import running
from published import name_of, register, txt

DOMAINS = ("unsigned.test", "secure.test", "expired.test", "wrong.test", "alias.test", "far.test")
SECURITY = {
    "secure.test": Security.SECURE,
    "expired.test": Security.EXPIRED,
    "wrong.test": Security.WRONG_DS,
}
TARGET = "key.expired.test"


@pytest.fixture
def run(cli, needs_tool, tmp_path):
    """The items of check-dns by domain, in a network with signed zones; and the exit status."""

    def run(*words: str, validates: bool = True, unsigned: str = ""):
        values = register(cli, *DOMAINS)
        lines = {domain: txt(name_of(domain), value) for domain, value in values.items()}
        lines["alias.test"] = f"{name_of('alias.test')}. CNAME {TARGET}.\n"
        lines["expired.test"] += txt(TARGET, values["alias.test"])
        zones = [
            Zone(domain, ("ns.test",), records, security=SECURITY.get(domain, Security.INSECURE))
            for domain, records in lines.items()
        ]
        hosts = [Host("ns.test", ("127.0.0.2",))]
        with running(
            tmp_path, needs_tool, hosts=hosts, zones=zones, validates=validates,
            resolver_options="ede: yes",
        ) as network:  # fmt: skip
            if unsigned:
                network.stop("ns.test")
                file = tmp_path / "ns.test" / f"{unsigned}.zone"
                remove_signature(file, unsigned, name_of(unsigned))
                network.start_host("ns.test")
            done, items = network.check_dns(cli, *words)
        return done.status, items

    return run


def remove_signature(file, origin: str, name: str) -> None:
    """Remove the signature of a name's TXT record from a signed zone file."""
    zone = dns.zone.from_file(str(file), origin, relativize=False)
    zone.delete_rdataset(f"{name}.", dns.rdatatype.RRSIG, dns.rdatatype.TXT)
    zone.to_file(str(file), relativize=False)


def verdicts(items) -> dict[str, str]:
    return {domain: item["verdict"] for domain, item in items.items()}


EXPECTED = {
    "unsigned.test": "published",
    "secure.test": "published",
    "expired.test": "bogus",
    "wrong.test": "bogus",
    "alias.test": "bogus",
    "far.test": "published",
}


def test_what_the_resolver_cannot_validate_is_bogus(run):
    status, items = run()
    assert (status, verdicts(items)) == (1, EXPECTED)
    reason = "the resolver 127.0.0.1 cannot validate NS expired.test (DNSSEC): EDE "
    assert items["expired.test"]["reason"].startswith(reason)
    assert [one["verdict"] for one in items["wrong.test"]["servers"]] == ["published"]


def test_a_resolver_in_place_of_the_servers_says_the_same(run):
    status, items = run("--resolver")
    assert (status, verdicts(items)) == (1, EXPECTED)


def test_a_resolver_that_does_not_validate_says_nothing(run):
    status, items = run(validates=False)
    assert (status, set(verdicts(items).values())) == (0, {"published"})


def test_a_record_without_its_signature_is_bogus(run):
    _, items = run("secure.test", unsigned="secure.test")
    assert items["secure.test"]["verdict"] == "bogus"
    assert "TXT s1._domainkey.secure.test (DNSSEC): EDE " in items["secure.test"]["reason"]
