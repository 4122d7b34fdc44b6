"""Domain names as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.specs.names import parse_domain
from dkimctl.text.dns_names import readable
from dkimctl.text.escaping import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("example.com", "example.com"),
        ("xn--r8jz45g.jp", "例え.jp"),
        ("mail.XN--MNCHEN-3YA.de", "mail.münchen.de"),
        ("xn--fiqs8s", "中国"),
    ],
)
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
