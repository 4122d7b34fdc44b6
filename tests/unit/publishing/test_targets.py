"""The targets of a profile are known at once, and opened when they are used."""

from __future__ import annotations

import pytest

from dkimctl.credentials.keyring_store import KeyringStore, ReferencedSecrets
from dkimctl.errors import CredentialsError, NegativeAnswer, ServiceError, UsageError
from dkimctl.publishing.plan import Access
from dkimctl.publishing.targets import check_access, open_targets
from dkimctl.settings.config import Config, DnsTarget
from dns_targets import FakeTarget

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


def test_a_missing_secret_is_an_error_when_the_target_is_used():
    (provider,) = open_targets(CONFIG, "sandbox", SECRETS)
    with pytest.raises(CredentialsError, match="NONE is not set"):
        provider.read("example.net", ["s1._domainkey.example.net"])
    server, _ = open_targets(CONFIG, "default", SECRETS)
    with pytest.raises(UsageError, match="no such TSIG key file: /none"):
        server.find_zones(["s1._domainkey.example.com"])


def test_a_zone_that_cannot_be_tried_has_the_reason(make_registration):
    failure = ServiceError("no answer")
    for method in ("find_zones", "check_access"):
        target = FakeTarget("a.test", errors={method: failure})
        (zone,), _ = check_access([make_registration("a.test")], [target])
        assert (zone.error, zone.access) == (failure, Access(False, None, "no answer"))


def test_zones_that_are_named_are_tried_also_without_registrations(make_registration):
    given = ["a.test", "b.test", "*.test", "missing.test"]
    target = FakeTarget("a.test", "b.test", "c.test", given=given)
    idle = FakeTarget("d.test", label="idle", given=["d.*"])
    registrations = list(map(make_registration, ("a.test", "c.org")))
    zones, uncovered = check_access(registrations, [target, idle], tries_named=True)
    assert [(each.zone, each.names, each.access.readable) for each in zones] == [
        ("a.test", 1, True), ("b.test", 0, True), ("missing.test", 0, False), ("", 0, None),
    ]  # fmt: skip
    assert uncovered == registrations[1:]
    assert isinstance(zones[2].error, NegativeAnswer)
    assert {zone for method, zone in target.calls if method == "check_access"} == {
        "a.test", "b.test"
    }  # fmt: skip
