"""What a sheet says of each record and zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.models.registration import DnsRecord, Registration, utc_time
from dkimctl.publication.handoff.places import Place
from dkimctl.publication.handoff.providers import Provider, Trait, ValueForm, provider_of
from dkimctl.text.character_strings import MAX_STRING

# Before the start: for servers and caches to get the record, and for us to check it.
AHEAD = timedelta(days=2)


class Timing(StrEnum):
    """When mail is signed with a key."""

    LATER = "later"
    NOW = "now"
    DISABLED = "disabled"  # not until it is enabled
    UNKNOWN = "unknown"


class SheetRecord(NamedTuple):
    """A record to add.

    `host` is its name relative to the zone, or the full name if that is not known. `starts_at` has
    the offset of the start date; `due` is when it should be in DNS, None: at once, or no matter
    when. `is_too_long`: the panel takes no value of this length.
    """

    sign_domain: str
    selector: str | None
    fqdn: str
    host: str
    value: str
    form: ValueForm
    is_too_long: bool
    timing: Timing
    starts_at: datetime | None
    due: datetime | None


class SheetZone(NamedTuple):
    """The records of a zone; those whose zone is not known are together by signing domain."""

    name: str
    place: Place
    provider: Provider | None
    records: Sequence[SheetRecord]


class Sheet(NamedTuple):
    """The whole sheet; `ttl` is in seconds, `contact` is whom to answer, or "".

    `is_removal`: the records are to be deleted, not added.
    """

    zones: Sequence[SheetZone]
    ttl: int
    contact: str
    made_at: datetime
    is_removal: bool = False

    @property
    def records(self) -> list[SheetRecord]:
        return [record for zone in self.zones for record in zone.records]


class SheetOptions(NamedTuple):
    """What is said of all records; `provider`: that of all zones, whatever their name servers."""

    ttl: int = 3600
    contact: str = ""
    provider: Provider | None = None
    is_removal: bool = False


def make_sheet(
    registrations: Iterable[tuple[Registration, DnsRecord]],
    places: Mapping[str, Place],
    options: SheetOptions,
    now: datetime,
) -> Sheet:
    """The sheet for these records, whose places are given by FQDN."""
    by_zone: dict[str, list[tuple[Registration, DnsRecord]]] = {}
    for registration, record in registrations:
        name = places[record.fqdn].zone or registration.sign_domain
        by_zone.setdefault(name, []).append((registration, record))
    zones = [
        _make_zone(name, of_zone, places[of_zone[0][1].fqdn], options.provider, now)
        for name, of_zone in by_zone.items()
    ]
    return Sheet(zones, options.ttl, options.contact, now, options.is_removal)


def _make_zone(
    name: str,
    of_zone: Sequence[tuple[Registration, DnsRecord]],
    place: Place,
    given: Provider | None,
    now: datetime,
) -> SheetZone:
    provider = given or provider_of(place.name_servers)
    records = [
        _make_record(registration, record, place.zone, provider, now)
        for registration, record in of_zone
    ]
    return SheetZone(name, place, provider, records)


def _make_record(
    registration: Registration,
    record: DnsRecord,
    zone: str,
    provider: Provider | None,
    now: datetime,
) -> SheetRecord:
    form, is_too_long = _form(record.value, provider)
    timing = _timing(registration, now)
    starts_at = _local_start(registration)
    due = starts_at - AHEAD if timing is Timing.LATER and starts_at else None
    return SheetRecord(
        registration.sign_domain,
        registration.selector,
        record.fqdn,
        record.fqdn[: -len(zone) - 1] if zone else record.fqdn,
        record.value,
        form,
        is_too_long,
        timing,
        starts_at,
        due if due and due > now else None,
    )


def _form(value: str, provider: Provider | None) -> tuple[ValueForm, bool]:
    """How to enter a value, and whether it is too long for the panel."""
    if provider is None:
        return ValueForm.WHOLE, False
    length = len(value)
    if provider.form is ValueForm.STRINGS:
        length += 3 * -(-length // MAX_STRING) - 1  # quotes, and spaces between strings
    if provider.limit is None or length <= provider.limit:
        return provider.form, False
    takes_strings = Trait.TEXT_MODE in provider.traits
    return (ValueForm.STRINGS, False) if takes_strings else (provider.form, True)


def _timing(registration: Registration, now: datetime) -> Timing:
    if not registration.signs:
        return Timing.DISABLED
    starts_at = registration.starts_at
    if starts_at is None:
        return Timing.UNKNOWN
    return Timing.LATER if starts_at > now else Timing.NOW


def _local_start(registration: Registration) -> datetime | None:
    """The start with the offset in which it was registered."""
    starts_at = registration.starts_at
    if starts_at is None or utc_time(registration.start_date) is None:
        return starts_at
    offset = datetime.fromisoformat(registration.start_date or "").tzinfo
    return starts_at.astimezone(offset)
