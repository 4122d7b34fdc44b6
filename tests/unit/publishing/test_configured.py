"""The targets of a profile are known at once, and opened when they are used."""

from __future__ import annotations

import pytest

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.sources import ReferencedSecrets
from dkimctl.errors import CredentialsError, ServiceError
from dkimctl.publishing.plan import Access, Applied
from dkimctl.publishing.targets import DeferredTarget, open_targets
from dkimctl.settings.config import Config, DnsTarget

DYNAMIC = DnsTarget("rfc2136", ("example.com",), ttl=300, server="192.0.2.1", key_file="/none")
EVERYWHERE = DnsTarget("rfc2136", server="192.0.2.2")
PROVIDER = DnsTarget(
    "octodns",
    ("*.example.net",),
    profiles=("agency", "sandbox"),
    class_name="octodns_x.X",
    settings={"hosts": [{"token": "env/NONE"}]},
)
CONFIG = Config(dns=(DYNAMIC, EVERYWHERE, PROVIDER))
SECRETS = ReferencedSecrets({}, KeyringStore())


class FakeTarget:
    """Counts how often it is made, and answers with what it got."""

    def __init__(self) -> None:
        self.made = 0

    def make(self) -> FakeTarget:
        self.made += 1
        return self

    def find_zones(self, names):
        return dict.fromkeys(names, "example.com")

    def read(self, zone, names):
        return dict.fromkeys(names, zone)

    def apply(self, zone, changes):
        return (Applied(change) for change in changes)

    def check_access(self, zone, names):
        return Access(True, True, zone)


def broken() -> FakeTarget:
    raise ServiceError("no such server", hint="correct it")


@pytest.mark.parametrize(
    ("profile", "labels"),
    [("default", ["192.0.2.1", "192.0.2.2"]),
     ("agency", ["192.0.2.1", "192.0.2.2", "octodns_x.X"]), ("sandbox", ["octodns_x.X"])],
)  # fmt: skip
def test_a_profile_has_its_targets_in_their_order(profile, labels):
    targets = open_targets(CONFIG, profile, SECRETS)
    assert [configured.target.label for configured in targets] == labels


def test_a_missing_secret_is_an_error_when_the_target_is_used():
    (configured,) = open_targets(CONFIG, "sandbox", SECRETS)
    with pytest.raises(CredentialsError, match="NONE is not set"):
        configured.target.read("example.net", ["s1._domainkey.example.net"])


def test_a_target_is_made_once_and_does_the_work():
    fake = FakeTarget()
    target = DeferredTarget("label", 300, fake.make)
    assert fake.made == 0
    assert target.find_zones(["a.example.com"]) == {"a.example.com": "example.com"}
    assert target.read("example.com", ["a"]) == {"a": "example.com"}
    assert list(target.apply("example.com", ["change"])) == [Applied("change")]
    assert target.check_access("example.com", ["a"]) == Access(True, True, "example.com")
    assert fake.made == 1


def test_a_target_that_cannot_be_made_fails_each_use():
    target = DeferredTarget("label", 300, broken)

    for method in (target.read, target.check_access):
        with pytest.raises(ServiceError, match="no such server"):
            method("example.com", ["a"])


def test_a_provider_that_lists_no_zones_has_those_that_are_named():
    entry = DnsTarget(
        "octodns",
        ("example.com", "*.example.net"),
        class_name="octodns_bind.Rfc2136Provider",
        settings={"host": "127.0.0.1"},
    )
    ((zones, target),) = open_targets(Config(dns=(entry,)), "default", SECRETS)
    assert zones == entry.zones
    names = ["s1._domainkey.example.com", "s1._domainkey.x.example.net"]
    assert target.find_zones(names) == dict(zip(names, ["example.com", None], strict=True))
