"""Text is made safe to show, and split into the strings of a TXT record."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.text import (
    DAY,
    Grouping,
    few,
    format_duration,
    listed,
    parse_duration,
    printable,
    quoted,
    without_names,
    without_values,
)


def test_control_and_invisible_characters_are_escaped():
    for char in "\x00\t\n\r\x1b\x7f\x85\x9b":
        assert printable(f"a{char}b") == f"a\\x{ord(char):02x}b"
    invisible = "\u061c\u200b\u200d\u200f\u2028\u2029\u202e\u2066\ufeff\ud800"
    fillers = "\u034f\u115f\u2800\u3164\uffa0"
    for char in invisible + fillers:
        assert printable(f"a{char}b") == f"a\\u{ord(char):04x}b"
    for text in ("back\\slash", "[red]x[/]", "日本語　東京", "café\u00a0!", "עברית", "नमस्ते"):
        assert printable(text) == text
    assert quoted("x" * 61 + "\x1b") == f'"{"x" * 60}…"'
    assert printable("a\U000e0041b") == r"a\U000e0041b"


@given(st.text(st.characters()))
def test_the_result_is_one_line_without_controls(text):
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown.splitlines()) <= 1
    assert shown.encode("utf-8").decode("utf-8") == shown


def test_long_lists_end_with_what_is_left_out():
    assert listed(list("abcd"), most=3) == "a, b, c, … and 1 more"
    assert listed(list("abc"), most=3) == listed(list("abc"), most=None) == "a, b, c"
    assert few(list("abcdef")) == "a, b, c, d, e, …"
    assert few(list("abcde")) == "a, b, c, d, e"


def test_messages_of_a_kind_differ_in_quoted_words_and_numbers():
    first, second, other = map(
        without_values, ('"a b" has a space, line 7', '"c" has a space, line 12', '"c" is a URL')
    )
    assert first == second != other


@given(st.lists(st.sampled_from("abc")), st.integers(0, 5))
def test_nothing_is_lost(kinds, most):
    grouping = Grouping[str](most)
    shown = Counter(kind for kind in kinds if grouping.shows(kind))
    assert all(count <= most for count in shown.values())
    assert shown + Counter(dict(grouping.rest())) == Counter(kinds)


@pytest.mark.parametrize(
    ("text", "domain", "selector", "expected"),
    [("a.test: TXT s1._domainkey.a.test: ns1.a.test (192.0.2.1): it answers REFUSED", "a.test",
      "S1", "DOMAIN: TXT FQDN: ns1.DOMAIN (192.0.2.1): it answers REFUSED"),
     ("DNS has no zone for Example.org.", "mail.example.org", None, "DNS has no zone for ZONE."),
     ("it is at s1._domainkey.example.com.example.com: no dot", "example.com", "s1",
      "it is at FQDN.DOMAIN: no dot"),
     ("ns1.example.net (192.0.2.1), notexample.com, com: none", "example.com", "s1",
      "ns1.example.net (192.0.2.1), notexample.com, com: none")],
)  # fmt: skip
def test_reasons_of_a_kind_differ_in_the_names_of_the_record(text, domain, selector, expected):
    assert without_names(text, domain, selector) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("0.5s", 0.5), ("5m", 300), ("24h", DAY), ("180d", 180 * DAY),
     ("26w", 182 * DAY), *((text, None) for text in ("", "0", "-1", "1y", "6mo", "1 h", "1h30m",
                                                    "nan", "inf", "1e3", "٣", "9d9", "999999d"))],
)  # fmt: skip
def test_durations_have_a_unit_and_a_limit(text, seconds):
    if seconds is None:
        with pytest.raises(UsageError, match="invalid duration"):
            parse_duration(text)
    else:
        assert parse_duration(text) == seconds
    assert parse_duration("0d", may_be_zero=True) == 0
    with pytest.raises(UsageError):
        parse_duration("2d", longest=DAY)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.1, "1 s"), (60, "1 min"), (3600 + 59, "1 h"), (7.5 * DAY, "7 d 12 h"),
     (3650 * DAY, "3650 d"), (7 * DAY + 90, "7 d")],
)  # fmt: skip
def test_durations_are_shown_in_at_most_two_units(seconds, text):
    assert format_duration(seconds) == text
