"""nsupdate scripts, read by dnspython."""

from __future__ import annotations

import io
import itertools

import dns.name
import dns.rrset
import dns.tsig
import dns.update
import dns.zonefile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.formats.dns_tools import NsupdateRenderer
from dkimctl.formats.renderer import Format, render_all
from dkimctl.models import DnsRecord
from rendering import render_text


def deletions_of(results, zones=()):
    return "".join(render_all(NsupdateRenderer(zones, ttl=None), results))


def test_only_sound_records_are_deleted_and_only_in_the_zones(every_outcome):
    text = deletions_of(every_outcome)
    sound = ("created", "exists", "differs", "retired")
    assert text == "".join(
        f"update delete s1._domainkey.{name}.example. IN TXT\nsend\n" for name in sound
    )
    with pytest.raises(UsageError, match="created"):
        deletions_of(every_outcome, ["example.net"])
    assert deletions_of([]) == ""


LONGEST_KEY = dns.tsig.Key(".".join(["k" * 61] * 4), b"secret", dns.tsig.HMAC_SHA512)
LONG_LABEL = "x" * 60 + "."
MAX_MESSAGE = 65_535  # RFC 1035 section 4.2.2


def updates_of(script):
    """The changes of each update, as dnspython reads the script."""
    updates = []
    for update in script.split("send\n")[:-1]:
        zone, *changes = update.splitlines()
        message = dns.update.UpdateMessage(zone.removeprefix("zone "))
        for change in changes:
            head, _, data = change.partition(" IN TXT")
            _, action, name, *ttl = head.split(" ")
            if action == "add":
                message.add(name, int(*ttl), "TXT", data)
            else:
                message.delete(name, "TXT")
        updates.append(message.update)
    return updates


def size_of(changes):
    """The octets of an update without compression of names, signed with a long name."""
    rest = dns.update.UpdateMessage("example.com")
    rest.use_tsig(LONGEST_KEY)
    wire = io.BytesIO()
    for rrset in changes:
        rrset.to_wire(wire)
    return len(rest.to_wire()) + len(wire.getvalue())


def records_of(sizes, depths=(0,)):
    """Records whose values have these sizes, with so many long labels in their names."""
    return [
        DnsRecord(f"s{n}._domainkey.{LONG_LABEL * depth}example.com", "TXT", "v" * size)
        for n, (size, depth) in enumerate(zip(sizes, itertools.cycle(depths), strict=False))
    ]


@given(
    st.lists(st.integers(1, 4096), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.integers(1, 40),
)
@settings(deadline=None, max_examples=10)
def test_an_update_fits_a_dns_message(results, sizes, depths, times):
    many = results(records_of(sizes * times, depths))
    scripts = (
        render_text(Format.NSUPDATE, many, zones=["example.com"]),
        deletions_of(many, ["example.com"]),
    )
    for script in scripts:
        updates = updates_of(script)
        assert max(map(size_of, updates)) <= MAX_MESSAGE
        assert len({rrset.name for changes in updates for rrset in changes}) == len(many)
