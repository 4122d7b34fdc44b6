"""What a sheet says of each record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.handoff.providers import DnsPlace, ValueForm, provider_with
from dkimctl.handoff.sheet import SheetOptions, Timing, make_sheet
from dkimctl.models import DnsRecord

NOW = datetime(2027, 1, 1, tzinfo=UTC)
PLACE = DnsPlace("example.com", ("ada.ns.cloudflare.com",))


@pytest.fixture
def make(make_registration):
    """The only record of a sheet; `place` and `provider` are those of its zone."""

    def make(*, place=PLACE, provider=None, **fields):
        registration = make_registration(**fields)
        record = registration.record
        options = SheetOptions(provider=provider)
        sheet = make_sheet([(registration, record)], {record.fqdn: place}, options, NOW)
        [zone] = sheet.zones
        [of_zone] = zone.records
        return of_zone

    return make


@pytest.mark.parametrize(
    ("fields", "timing", "starts", "due"),
    [
        ({"start_date": "2027-03-01T00:00+09:00"}, Timing.LATER, "2027-03-01T00:00+09:00",
         "2027-02-27T00:00+09:00"),
        ({"start_date": "2027-01-02T00:00+00:00"}, Timing.LATER, "2027-01-02T00:00+00:00", None),
        ({"start_date": "2026-01-02T00:00+00:00"}, Timing.NOW, "2026-01-02T00:00+00:00", None),
        ({"start_date": "2027-03-01T00:00+09:00", "enable": False}, Timing.DISABLED,
         "2027-03-01T00:00+09:00", None),
        ({"start_date": "soon"}, Timing.UNKNOWN, None, None),
    ],
)  # fmt: skip
def test_when_a_record_is_due(make, fields, timing, starts, due):
    record = make(**fields)
    assert record.timing is timing
    assert record.starts_at == (starts and datetime.fromisoformat(starts))
    assert record.due == (due and datetime.fromisoformat(due))
    if starts:
        assert record.starts_at.utcoffset() == datetime.fromisoformat(starts).utcoffset()


def test_signing_never_starts_before_the_registration(make):
    record = make(start_date="2026-01-01T00:00+09:00", regist_date="2026-12-31T00:00:00+00:00")
    assert record.starts_at.utcoffset() == timedelta(hours=9)
    assert record.starts_at == datetime(2026, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("key", "key_len", "form", "is_too_long"),
    [("cloudflare", 4096, ValueForm.WHOLE, False), ("godaddy", 4096, ValueForm.WHOLE, False),
     ("route53", 2048, ValueForm.STRINGS, False), ("ovh", 1024, ValueForm.WHOLE, False),
     ("ovh", 2048, ValueForm.STRINGS, False), ("sakura", 1024, ValueForm.WHOLE, False),
     ("sakura", 2048, ValueForm.WHOLE, True)],
)  # fmt: skip
def test_the_value_is_entered_as_the_panel_takes_it(make, key, key_len, form, is_too_long):
    record = make(key_len=key_len, provider=provider_with(key))
    assert (record.form, record.is_too_long) == (form, is_too_long)


@pytest.mark.parametrize(("length", "is_too_long"), [(3953, False), (3954, True)])
def test_quotes_and_spaces_count_towards_the_limit(make, length, is_too_long):
    """16 strings: 32 quotes, and 15 spaces, so 47 of 4,000 characters."""
    value = "v" * length
    record = make(record=DnsRecord("s1._domainkey.example.com", "TXT", value),
                  provider=provider_with("route53"))  # fmt: skip
    assert record.is_too_long is is_too_long
