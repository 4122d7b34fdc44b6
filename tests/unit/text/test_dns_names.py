"""Which zone a name is in, as dnspython and a search through all zones say."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.text.dns_names import contains, is_glob, parents, zone_finder

LABELS = st.lists(st.sampled_from(("a", "A", "b", "ab", "com")), min_size=1, max_size=4)
NAMES = LABELS.map(".".join)


def is_below(name: str, zone: str) -> bool:
    return dns.name.from_text(name).is_subdomain(dns.name.from_text(zone))


@given(zone=NAMES, name=NAMES)
def test_a_zone_contains_what_is_at_or_below_its_apex(zone, name):
    assert contains(zone, name) == is_below(name, zone)


@given(zones=st.lists(NAMES, max_size=4, unique_by=str.lower), name=NAMES)
def test_the_longest_zone_that_contains_a_name_is_found(zones, name):
    above = [zone for zone in zones if is_below(name, zone)]
    assert zone_finder(zones)(name) == max(above, key=len, default=None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("A.b.Com", ["a.b.com", "b.com", "com"]), ("com", ["com"]), ("", [])],
)
def test_a_name_and_those_above_it(name, expected):
    assert list(parents(name)) == expected


@pytest.mark.parametrize("pattern", ["*.example.com", "a?.example.com", "[ab].example.com"])
def test_a_pattern_is_told_from_a_name(pattern):
    assert is_glob(pattern)
    assert not is_glob("xn--bcher-kva._domainkey.example.com")
