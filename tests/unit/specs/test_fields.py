"""The fields of an entry."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.specs.entries import parse_start_date


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2026-12-01", "write 2026-12-01T00:00+09:00"),
        ("2026-12-01T09:30", "write 2026-12-01T09:30+09:00"),
        ("2026-12-01 09:30:00+09:00", "write 2026-12-01T09:30+09:00"),
        ("2026-12-01T09:30+0900", "write 2026-12-01T09:30+09:00"),
        ("2026-12-01T09:30:01Z", "write 2026-12-01T09:30+09:00"),
        ("tomorrow", "write 2026-12-01T00:00+09:00"),
        ("\uff12026-12-01T09:30Z", "write 2026-12-01T00:00+09:00"),
        ("2026-02-29T00:00Z", "correct the date"),
        ("2026-12-01T00:00+24:00", "correct the date"),
        ("0000-01-01T00:00Z", "correct the date"),
        ("0001-01-01T00:00+09:00", "correct the date"),
        ("9999-12-31T23:59-09:00", "correct the date"),
        ("2026-12-01T24:00Z", "write 2026-12-01T"),
    ],
)
def test_other_start_dates_are_refused_with_a_correction(text, hint):
    with pytest.raises(UsageError) as caught:
        parse_start_date(text)
    assert caught.value.hint.startswith(hint)
