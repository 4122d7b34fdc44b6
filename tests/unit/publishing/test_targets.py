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


@pytest.mark.parametrize(
    ("profile", "labels"),
    [("default", ["192.0.2.1", "192.0.2.2"]),
     ("agency", ["192.0.2.1", "192.0.2.2", "octodns_x.X"]), ("sandbox", ["octodns_x.X"])],
)  # fmt: skip
def test_a_profile_has_its_targets_in_their_order(profile, labels):
    targets = open_targets(CONFIG, profile, SECRETS)
    assert [target.label for target in targets] == labels


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


def test_zones_that_are_named_are_tried_without_registrations(make_registration):
    given = ["a.test", "b.test", "*.test", "missing.test"]
    target = FakeTarget("a.test", "b.test", "c.test", given=given)
    idle = FakeTarget("d.test", label="idle", given=["d.*"])
    told = []
    registrations = list(map(make_registration, ("a.test", "mail.a.test", "c.org")))
    zones, uncovered = check_access(
        registrations, [target, idle], tries_named=True, progress=told.append
    )
    assert (uncovered, told[-1], target.names) == (registrations[2:], 2, {})
    assert [(one.zone, one.names, one.access.readable) for one in zones] == [
        ("a.test", 2, True), ("b.test", 0, True), ("missing.test", 0, False), ("", 0, None),
    ]  # fmt: skip
    assert isinstance(zones[2].error, NegativeAnswer)
    tried = sorted(zone for method, zone in target.calls if method == "check_access")
    assert tried == ["a.test", "b.test"]  # at the same time, in either order
