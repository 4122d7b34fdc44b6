"""What the formats with files for each zone have in common."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.render.renderer import PER_ZONE, Format, file_stem
from dkimctl.render.results import open_results
from rendering import LONGEST, fqdn_of, render_files


def test_the_longest_name_has_253_octets() -> None:
    for selector in ("s", "s" * 60, ".".join(["s" * 63] * 3)[:180]):
        assert len(fqdn_of(selector, LONGEST)) == 253


@pytest.mark.parametrize("fmt", [*PER_ZONE, Format.ZONE, Format.NSUPDATE])
def test_each_record_goes_into_the_longest_zone_that_contains_it(result, fmt) -> None:
    results = [
        result(sign_domain=domain)
        for domain in ("example.com", "mail.example.com", "notexample.com", "example.net")
    ]
    zones = ["example.com", "mail.example.com", "NOTexample.com".lower(), "net", "unused.example"]
    suffix = open_results(fmt, per_zone=True).suffix
    files = render_files(fmt, results, zones, per_zone=True)
    assert {file.name.removesuffix(f".{suffix}") for file in files} == {*zones[:4]}
    assert {file.zone: file.records for file in files} == dict.fromkeys(zones[:4], 1)
    for file in files:
        assert "".join(file.chunks).count("v=DKIM1") == 1
    with pytest.raises(UsageError, match=r"s1\._domainkey\.notexample\.com, s1\._domainkey\.ex"):
        render_files(fmt, results, ["example.com"], per_zone=True)


@pytest.mark.parametrize("zone", ["con", "con.example", "AUX.example", "com1.example", "lpt9"])
def test_no_file_is_named_after_a_device_of_windows(zone) -> None:
    assert file_stem(zone) == f"_{zone}"


@pytest.mark.parametrize("zone", ["example.com", "console.example", "mail.con.example", "com10"])
def test_other_files_are_named_after_the_zone(zone) -> None:
    assert file_stem(zone) == zone


def test_octodns_finds_its_file_by_the_name_of_the_zone(result) -> None:
    results = [result(sign_domain="con.example")]
    names = [
        render_files(fmt, results, ["con.example"])[0].name
        for fmt in (Format.OCTODNS, Format.POWERDNS)
    ]
    assert names == ["con.example.yaml", "_con.example.json"]


def test_the_name_of_a_file_is_not_too_long_and_its_own() -> None:
    stems = {file_stem(f"{'a.' * 120}{last}") for last in ("example", "examples")}
    assert len(stems) == 2
    assert max(map(len, stems)) < 230
