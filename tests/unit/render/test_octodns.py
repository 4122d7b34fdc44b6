"""Zone files for octoDNS, loaded by octoDNS."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from dkimctl.models.registration import DnsRecord
from dkimctl.render.renderer import Format
from rendering import RECORDS, name_and_value, render_file


def octodns_can_hold(record: DnsRecord) -> bool:
    """Whether octoDNS has a form for the value, and takes the name.

    It counts the final dot among the 253 octets of a name.
    """
    value = record.value
    has_form = not value.startswith('"') and "\\;" not in value and '" "' not in value
    return has_form and len(record.fqdn) < 253


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(records=RECORDS.filter(lambda records: all(map(octodns_can_hold, records))))
def test_octodns_loads_the_file_strictly_and_reads_the_same_values(results, records) -> None:
    from octodns.provider.yaml import YamlProvider
    from octodns.zone import Zone

    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "example.com.yaml").write_text(
            render_file(Format.OCTODNS, results(records))
        )
        zone = Zone("example.com.", [])
        provider = YamlProvider("config", directory, escaped_semicolons=True, enforce_order=True)
        provider.populate(zone, lenient=False)
    loaded = {(record.fqdn.removesuffix("."), *record.values) for record in zone.records}
    assert {name for name, _ in loaded} == {record.fqdn for record in records}
    assert {(name, value.replace("\\;", ";")) for name, value in loaded} == name_and_value(records)
    assert all(record.ttl == 3600 for record in zone.records)
