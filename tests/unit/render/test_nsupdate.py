"""nsupdate scripts, read by dnspython."""

from __future__ import annotations

import re
from collections.abc import Sequence

import dns.name
import dns.zonefile
import pytest
from hypothesis import given

from dkimctl.errors import UsageError
from dkimctl.models.registration import DnsRecord, Result
from dkimctl.render.nsupdate import NsupdateDeletionRenderer
from dkimctl.render.renderer import Format, render_all
from rendering import RECORDS, render_text


def deletions_of(results: Sequence[Result], zones: Sequence[str] = ()) -> str:
    return "".join(render_all(NsupdateDeletionRenderer(zones), results))


@given(records=RECORDS)
@pytest.mark.parametrize("zones", [[], ["example.com"]])
def test_the_script_replaces_only_the_txt_rrset_of_each_name(results, zones, records) -> None:
    lines = render_text(Format.NSUPDATE, results(records), ttl=60, zones=zones).splitlines()
    added = []
    for line in lines:
        if line.startswith("update add "):
            [rrset] = dns.zonefile.read_rrsets(line.removeprefix("update add "), rdclass=None)
            [rdata] = rrset
            assert rrset.ttl == 60
            added.append((rrset.name.to_text(omit_final_dot=True), b"".join(rdata.strings)))
        elif line.startswith("update delete "):
            _, _, name, *types = line.split(" ")
            assert types == ["IN", "TXT"]
            assert name.removesuffix(".") in {record.fqdn for record in records}
        else:
            assert line in ("send", "zone example.com.")
    assert added == [(record.fqdn, record.value.encode()) for record in records]
    assert lines.count("send") == (1 if zones else len(records))
    assert lines.count("zone example.com.") == len(zones)
    assert lines[-1] == "send"


@given(records=RECORDS)
@pytest.mark.parametrize("zones", [[], ["example.com"]])
def test_deletions_remove_only_the_txt_rrset_of_each_name(results, zones, records) -> None:
    lines = deletions_of(results(records), zones).splitlines()
    names = [line.split(" ")[2] for line in lines if line.startswith("update")]
    assert [dns.name.from_text(name).to_text(omit_final_dot=True) for name in names] == [
        record.fqdn for record in records
    ]
    for line in lines:
        other = line in ("send", "zone example.com.")
        assert other or re.fullmatch(r"update delete \S+\. IN TXT", line)
    assert lines.count("send") == (1 if zones else len(records))
    assert lines.count("zone example.com.") == len(zones)
    assert lines[-1] == "send"


def test_only_publishable_records_are_deleted_and_only_in_the_zones(every_outcome) -> None:
    text = deletions_of(every_outcome)
    sound = ("created", "exists", "differs")
    assert text == "".join(
        f"update delete s1._domainkey.{name}.example. IN TXT\nsend\n" for name in sound
    )
    with pytest.raises(UsageError, match="created"):
        deletions_of(every_outcome, ["example.net"])
    assert deletions_of([]) == ""


def test_an_update_fits_a_dns_message(result) -> None:
    many = [
        result(record=DnsRecord(f"s{n}._domainkey.example.com", "TXT", "v=DKIM1; p=" + "A" * 800))
        for n in range(120)
    ]
    text = render_text(Format.NSUPDATE, many, zones=["example.com"])
    updates = text.split("send\n")[:-1]
    assert [update.count("update add") for update in updates] == [50, 50, 20]
    assert all(update.startswith("zone example.com.\n") for update in updates)
