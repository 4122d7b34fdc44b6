"""Signing domains, selectors and dates: what they become, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import dns.name
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.names import (
    is_glob,
    parse_domain,
    parse_selector,
    selector_template,
    zone_finder,
)
from dkimctl.specs.entries import parse_start_date
from dkimctl.text import printable, readable


@pytest.mark.interface("2.3", "sign_domain")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("Example.COM.", "example.com"), ("Bücher.example", "xn--bcher-kva.example"),
     ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
     ("straße.example", "xn--strae-oqa.example"), ("例え。テスト。", "xn--r8jz45g.xn--zckzah"),
     ("r3---sn.example", "r3---sn.example"), ("1.example", "1.example")],
)  # fmt: skip
def test_signing_domains_become_a_labels(text, expected):
    assert parse_domain(text) == expected


@pytest.mark.interface("2.3", "sign_domain")
@pytest.mark.parametrize(
    ("text", "what"),
    [("192.0.2.1", "ends in a number"), ("[2001:db8::1]", "contains a colon"),
     ("https://example.com", "is a URL"), ("example.com/mail", "is a URL or a path"),
     ("s1._domainkey.example.com", "is the name of a key record"),
     ("example.com,example.net", "is not one domain name"),
     ("sign_domain:example.com", "contains a colon"),
     ("a@example.com", "is an email address"), ("*.example.com", "is a wildcard"),
     ("localhost", "is a single label"), ("a..example", "has an empty label"),
     ("a" * 64 + ".example", "has a label of 64 octets"),
     ("ü" * 60 + ".example", "is not a valid internationalized domain name"),
     ("a." * 124 + "example", "is longer than 253 octets"),
     ("_dmarc.example", 'contains "_"'), ("a b.example", "is not one domain name"),
     ("-a.example", "has a label with a hyphen at its start or end"),
     ("a!.example", 'contains "!"'), ("1.2.3", "ends in a number"),
     ("xn--a.example", "is not a valid internationalized domain name"),
     ("a\x1b.example", r'"a\x1b.example" contains')],
)  # fmt: skip
def test_other_signing_domains_are_refused_with_the_reason(text, what):
    with pytest.raises(UsageError) as caught:
        parse_domain(text)
    assert what in caught.value.message
    assert caught.value.hint


@given(st.text())
@example("\ud800.example")
@example("ä" * 300)
def test_any_text_becomes_ascii_or_is_refused(text):
    try:
        name = parse_domain(text)
    except UsageError:
        return
    assert name.isascii()
    assert parse_domain(name) == name


@pytest.mark.interface("2.3", "selector")
def test_selectors_are_labels_joined_by_dots():
    for text in ("s1", "S1", "20260101", "s1.eu", "a-b", "a" * 63):
        assert parse_selector(text) == text
    for text in ("", ".", "s1.", "s_1", "-s", "s1\n", "sé", "a" * 64, "s1._domainkey", "\u212a",
                 "a." * 127 + "a"):  # fmt: skip
        with pytest.raises(UsageError):
            parse_selector(text)


@pytest.mark.parametrize(
    "text",
    ["https://example.com/a?b", "smtp://me:s3cr3t@example.com:25", "s1._domainkey.example.com",
     "_domainkey.Example.com."],
)  # fmt: skip
def test_the_domain_within_another_name_is_suggested(text):
    with pytest.raises(UsageError) as caught:
        parse_domain(text)
    assert caught.value.hint.endswith(": example.com")
    assert "s3cr3t" not in caught.value.message


NOW = datetime(2026, 11, 21, 15, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("template", "selector"),
    [("s%Y%m%d", "s20261121"), ("s%y%m", "s2611"), ("k%j-%H%M%S", "k325-150405"),
     ("w%G.%V", "w2026.47"), ("s{domain}", "sa379a6f6"), ("s%Y-{domain}", "s2026-a379a6f6"),
     ("mail", "mail")],
)  # fmt: skip
def test_selector_from_template(template, selector):
    assert selector_template(template, NOW)("example.com") == selector


@pytest.mark.parametrize(
    ("template", "what"),
    [("s%", '"%"'), ("s%A", "%A"), ("s%%", "%%"), ("s{sign_domain}", "{"), ("", "empty"),
     ("s_%Y", "_"), ("a..b", "empty label"), ("x" * 64, "64 octets"), ("s%Y\n", "\\x0a"),
     ("s._domainkey", "_domainkey"), ("sé", "é"), ("s\ud800", "\\ud800")],
)  # fmt: skip
def test_invalid_templates_are_refused_with_the_reason(template, what):
    with pytest.raises(UsageError) as caught:
        selector_template(template, NOW)
    assert "--assign-selector" in caught.value.message
    assert what in caught.value.message
    assert caught.value.hint


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    ("text", "hint"),
    [("2026-12-01", "write 2026-12-01T00:00+09:00"),
     ("2026-12-01T09:30", "write 2026-12-01T09:30+09:00"),
     ("2026-12-01 09:30:00+09:00", "write 2026-12-01T09:30+09:00"),
     ("2026-12-01T09:30:01Z", "write 2026-12-01T09:30+09:00"),
     ("tomorrow", "write 2027-07-01T00:00+09:00"),
     ("\uff12026-12-01T09:30Z", "write 2027-07-01T00:00+09:00"),
     ("2026-12-01T24:00Z", "correct the date"), ("2026-02-29T00:00Z", "correct the date"),
     ("2026-12-01T00:00+24:00", "correct the date"),
     ("0001-01-01T00:00+09:00", "correct the date")],
)  # fmt: skip
def test_other_start_dates_are_refused_with_a_correction(text, hint):
    with pytest.raises(UsageError) as caught:
        parse_start_date(text)
    assert caught.value.hint.startswith(hint)


def test_a_pattern_is_distinguished_from_a_name():
    assert all(map(is_glob, ("*.example.com", "a?.example.com", "[ab].example.com")))
    assert not is_glob("xn--bcher-kva._domainkey.example.com")


LABELS = st.lists(st.sampled_from(("a", "A", "b", "ab", "com")), min_size=1, max_size=4)
NAMES = LABELS.map(".".join)


def is_below(name: str, zone: str) -> bool:
    return dns.name.from_text(name).is_subdomain(dns.name.from_text(zone))


@given(zones=st.lists(NAMES, max_size=4, unique_by=str.lower), name=NAMES)
@example(zones=["com", "B.com", "a.com"], name="a.b.Com")
@example(zones=["b.com"], name="ab.com")
@example(zones=["a.b.com", "b.com"], name="A.b.com")
def test_the_longest_zone_that_contains_a_name_is_found(zones, name):
    above = [zone for zone in zones if is_below(name, zone)]
    assert zone_finder(zones)(name) == max(above, key=len, default=None)


@given(st.from_regex(r"(xn--[a-z0-9-]{0,20}\.){1,2}com", fullmatch=True))
@example("mail.xn--r8jz45g.com")
def test_what_is_shown_is_safe_on_a_terminal_and_means_the_same_name(name):
    shown = readable(name)
    assert readable("mail.XN--MNCHEN-3YA.de") == "mail.münchen.de"
    assert readable("xn--4dbrk0ce.com") == "xn--4dbrk0ce.com"  # is read from right to left
    assert printable(shown) == shown
    if shown != name and "xn--" not in shown:
        assert parse_domain(shown) == name
