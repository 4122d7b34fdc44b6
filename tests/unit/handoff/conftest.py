from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from dkimctl.handoff.providers import DnsPlace, Trouble, providers
from dkimctl.handoff.sheet import Sheet, make_sheet

NOW = datetime(2027, 1, 1, tzinfo=UTC)
STARTS = ("2027-03-01T00:00+09:00", "2026-01-01T00:00+00:00", "soon")


@pytest.fixture
def sheet_of(make_registration) -> Callable[..., Sheet]:
    """A sheet with a record for each zone; `value` is that of each."""

    def sheet_of(*zones: str, value: str = "", place=None, **options) -> Sheet:
        pairs, places = [], {}
        for number, zone in enumerate(zones or ("example.com",)):
            start = STARTS[number % len(STARTS)]
            registration = make_registration(zone, start_date=start, enable=number != 3)
            record = registration.record._replace(value=value or registration.record.value)
            pairs.append((registration, record))
            places[record.fqdn] = place or DnsPlace(zone, ("ns1.example.net",))
        return make_sheet(pairs, places, NOW, **options)

    return sheet_of


@pytest.fixture
def every_sheet(sheet_of) -> list[Sheet]:
    """Sheets that, together, say everything that a sheet can."""
    zones = ("example.com", "example.net", "xn--r8jz45g.jp", "example.org", "example.jp")
    return [
        *(sheet_of(*zones, panel=each, contact="Mail team <mail@example.net>")
          for each in (None, *providers())),
        *(sheet_of(place=DnsPlace(trouble=each, reason="why")) for each in Trouble),
        sheet_of(place=DnsPlace("example.com", trouble=Trouble.NO_ANSWER, reason="why")),
        sheet_of("sub.example.com", place=DnsPlace("example.com")),
        sheet_of("example.com", is_removal=True),
        sheet_of("example.com", "example.net", is_removal=True),
    ]  # fmt: skip
