"""Retry-After, in seconds and as a date (RFC 9110 section 10.2.3)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.client.retry_after import parse_retry_after

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), ("120", 120.0), (" 7 ", 7.0), ("000999", 999.0), ("9" * 5000, 1e9)],
)
def test_seconds(value, seconds):
    assert parse_retry_after(value, "", NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:51:37 GMT",  # as it is to be written
        "Sunday, 06-Nov-94 08:51:37 GMT",  # both obsolete forms, which are to be understood
        "Sun Nov  6 08:51:37 1994",
    ],
)
def test_a_date_without_the_answers_own_is_compared_with_our_clock(value):
    assert parse_retry_after(value, "", NOW) == 120.0


@pytest.mark.parametrize("drift", [-3600, 0, 3600])
def test_a_date_is_compared_with_the_answers_own_whatever_our_clock_says(drift):
    until, said = "Sun, 06 Nov 1994 08:51:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"
    assert parse_retry_after(until, said, NOW + drift) == 120.0


def test_a_date_that_has_passed_is_no_wait():
    assert parse_retry_after("Sun, 06 Nov 1994 08:00:00 GMT", "", NOW) == 0.0


@pytest.mark.parametrize(
    "value", ["", "soon", "-1", "1.5", "1e3", "١٢", "nan", "inf", "Sun, 99 Nov 1994"]
)
def test_anything_else_says_nothing(value):
    assert parse_retry_after(value, "", NOW) is None


@given(st.text(), st.text())
def test_any_text_gives_a_finite_number_or_none(value, date):
    seconds = parse_retry_after(value, date, NOW)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))
