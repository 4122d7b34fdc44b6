"""Request bodies for the API of PowerDNS."""

from __future__ import annotations

import json

from hypothesis import given

from dkimctl.render.renderer import Format
from rendering import RECORDS, name_and_value, render_file, txt_value


@given(records=RECORDS)
def test_the_body_replaces_the_rrset_of_each_name(results, records) -> None:
    rrsets = json.loads(render_file(Format.POWERDNS, results(records), ttl=60))["rrsets"]
    rendered = set()
    for rrset in rrsets:
        assert rrset["changetype"] == "REPLACE"
        assert (rrset["type"], rrset["ttl"]) == ("TXT", 60)
        [record] = rrset["records"]
        rendered.add((rrset["name"].removesuffix("."), txt_value(record["content"])))
    assert rendered == name_and_value(records)
