"""Domain names: which zone one is in, and how people read it."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.names import contains, is_glob, parents, parse_domain, readable, zone_finder
from dkimctl.text import printable

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
    ("name", "expected"), [("A.b.Com", ["a.b.com", "b.com", "com"]), ("com", ["com"]), ("", [])]
)
def test_a_name_and_those_above_it(name, expected):
    assert list(parents(name)) == expected


@pytest.mark.parametrize("pattern", ["*.example.com", "a?.example.com", "[ab].example.com"])
def test_a_pattern_is_told_from_a_name(pattern):
    assert is_glob(pattern)
    assert not is_glob("xn--bcher-kva._domainkey.example.com")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("example.com", "example.com"), ("xn--r8jz45g.jp", "例え.jp"),
     ("mail.XN--MNCHEN-3YA.de", "mail.münchen.de"), ("xn--fiqs8s", "中国")],
)  # fmt: skip
def test_an_internationalized_name_is_shown_in_its_own_script(name, shown):
    assert readable(name) == shown


@pytest.mark.parametrize(
    "name",
    [
        "xn--.com",
        "xn--a.com",
        "xn--99999999999.com",
        "xn--4dbrk0ce.com",  # Hebrew, from right to left
        "xn--mgbh0fb.com",  # Arabic
        "xn--example-.com",
        "xn--\N{LATIN SMALL LETTER E WITH ACUTE}.com",
    ],
)
def test_a_name_that_cannot_be_shown_well_stays_as_it_is(name):
    assert readable(name) == name


@given(st.from_regex(r"(xn--[a-z0-9-]{0,20}\.){1,2}com", fullmatch=True))
def test_what_is_shown_is_safe_on_a_terminal_and_means_the_same_name(name):
    shown = readable(name)
    assert printable(shown) == shown
    if shown != name and "xn--" not in shown:
        assert parse_domain(shown) == name
