"""Durations, as people write them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.text import DAY, parse_duration, with_unit, written_duration


def test_units():
    seconds = {"30": 30, "30s": 30, "0.5s": 0.5, "5m": 300, "24h": DAY, "180d": 180 * DAY,
               "26w": 182 * DAY}  # fmt: skip
    assert {text: parse_duration(text) for text in seconds} == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1y", "6mo", "1 h", "1h30m", "nan", "inf", "1e3", "٣", "9d9"]
)
def test_other_text_is_not_a_duration(text):
    with pytest.raises(UsageError, match="invalid duration"):
        parse_duration(text)


def test_limits():
    assert parse_duration("0d", may_be_zero=True) == 0
    with pytest.raises(UsageError):
        parse_duration("2d", longest=DAY)
    with pytest.raises(UsageError):
        parse_duration("999999999d")


@pytest.mark.parametrize(
    ("text", "longest", "hint"),
    [("soon", 90 * DAY, "write 30s, 5m, 2h, 14d or 26w"),
     ("1y", 90 * DAY, "the units are s, m (minutes), h, d and w (weeks)"),
     ("2 weeks", 90 * DAY, "without a space"), ("100d", 90 * DAY, "write at most 90d"),
     ("3d", DAY, "write at most 24h"), ("x", DAY, "write 30s, 5m or 24h")],
)  # fmt: skip
def test_the_hint_says_what_can_be_written(text, longest, hint):
    with pytest.raises(UsageError) as caught:
        parse_duration(text, longest=longest)
    assert hint in caught.value.hint


def test_a_bare_number_is_shown_with_its_unit():
    assert (with_unit("180"), with_unit("26w")) == ("180s", "26w")


@given(st.text())
def test_any_text_gives_seconds_or_an_error(text):
    with contextlib.suppress(UsageError):
        assert 0 < parse_duration(text) <= 3650 * DAY


def test_a_duration_is_written_as_it_was():
    for text in ("180d", "36h", "90m", "45s", "0.5s"):
        assert written_duration(parse_duration(text)) == text


@given(st.integers(1, 10**8))
def test_what_is_written_is_read_again(seconds):
    assert parse_duration(written_duration(seconds)) == seconds
