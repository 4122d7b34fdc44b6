"""Durations, as people write them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.text.durations import DAY, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("0.5s", 0.5), ("5m", 300), ("24h", DAY), ("180d", 180 * DAY)],
)
def test_units(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1w", "1 h", "1h30m", "nan", "inf", "1e3", "٣", "9d9"]
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


@given(st.text())
def test_any_text_gives_seconds_or_an_error(text):
    with contextlib.suppress(UsageError):
        assert 0 < parse_duration(text) <= 3650 * DAY
