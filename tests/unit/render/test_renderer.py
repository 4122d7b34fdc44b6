"""What the formats with files for each zone have in common."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.render.formats import open_renderer
from dkimctl.render.renderer import PER_ZONE
from rendering import LONGEST, fqdn_of, render_files


def test_the_longest_name_has_253_octets() -> None:
    for selector in ("s", "s" * 60, ".".join(["s" * 63] * 3)[:180]):
        assert len(fqdn_of(selector, LONGEST)) == 253


@pytest.mark.parametrize("fmt", PER_ZONE)
def test_each_record_goes_into_the_longest_zone_that_contains_it(result, fmt) -> None:
    results = [
        result(sign_domain=domain)
        for domain in ("example.com", "mail.example.com", "notexample.com", "example.net")
    ]
    zones = ["example.com", "mail.example.com", "NOTexample.com".lower(), "net", "unused.example"]
    suffix = open_renderer(fmt).suffix
    files = {name: "".join(chunks) for name, chunks in render_files(fmt, results, zones)}
    assert {name.removesuffix(f".{suffix}") for name in files} == {*zones[:4]}
    with pytest.raises(UsageError, match=r"s1\._domainkey\.notexample\.com, s1\._domainkey\.ex"):
        render_files(fmt, results, ["example.com"])
