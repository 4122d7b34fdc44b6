"""What a sheet says of each record and zone, and where in DNS they belong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.addresses import Address
from dkimctl.dns.messages import NS, make_question, to_text
from dkimctl.dns.nameserver import NoAnswer, RecursiveResolver
from dkimctl.dns.zones import answer_data, find_zone, look_up, once
from dkimctl.errors import ServiceError
from dkimctl.handoff.providers import DnsProvider, Trait, ValueForm, provider_of
from dkimctl.models import DnsRecord, Registration, utc_time
from dkimctl.names import zone_finder
from dkimctl.text import MAX_STRING

_MAX_IN_FLIGHT = 32  # questions to a resolver that others use as well
# Before the start: for servers and caches to get the record, and for us to check it.
AHEAD = timedelta(days=2)


class Trouble(StrEnum):
    """Why something about a place is not known."""

    NONE = ""
    NO_ZONE = "no_zone"  # DNS has none with this name
    NO_ANSWER = "no_answer"


class DnsPlace(NamedTuple):
    """A zone ("": not known), its name servers; `reason`: what DNS answered, if in trouble."""

    zone: str = ""
    name_servers: tuple[str, ...] = ()
    trouble: Trouble = Trouble.NONE
    reason: str = ""


class Timing(StrEnum):
    """When mail is signed with a key."""

    LATER = "later"
    NOW = "now"
    DISABLED = "disabled"  # not until it is enabled
    UNKNOWN = "unknown"


class SheetRecord(NamedTuple):
    """A record to add, or to delete."""

    sign_domain: str
    selector: str | None
    fqdn: str
    host: str  # relative to the zone; the full name if that is not known
    value: str
    form: ValueForm
    is_too_long: bool  # for the provider's panel
    timing: Timing
    starts_at: datetime | None  # with the offset of the start date
    due: datetime | None  # when it should be in DNS; None: at once, or no matter when


class SheetZone(NamedTuple):
    """The records of a zone; those whose zone is not known are together by signing domain."""

    name: str
    place: DnsPlace
    provider: DnsProvider | None
    records: Sequence[SheetRecord]


class Sheet(NamedTuple):
    """The whole sheet."""

    zones: Sequence[SheetZone]
    ttl: int  # in seconds
    contact: str  # whom to answer, or ""
    made_at: datetime
    is_removal: bool = False  # the records are to be deleted, not added

    @property
    def records(self) -> list[SheetRecord]:
        return [record for zone in self.zones for record in zone.records]


class SheetOptions(NamedTuple):
    """What is said of all records; `provider`: that of all zones, whatever their name servers."""

    ttl: int = 3600
    contact: str = ""
    provider: DnsProvider | None = None
    is_removal: bool = False


def make_sheet(
    registrations: Iterable[tuple[Registration, DnsRecord]],
    places: Mapping[str, DnsPlace],
    options: SheetOptions,
    now: datetime,
) -> Sheet:
    """The sheet for these records, whose places are given by FQDN."""
    by_zone: dict[str, list[tuple[Registration, DnsRecord]]] = {}
    for registration, record in registrations:
        name = places[record.fqdn].zone or registration.sign_domain
        by_zone.setdefault(name, []).append((registration, record))
    zones = []
    for name, of_zone in by_zone.items():
        place = places[of_zone[0][1].fqdn]
        provider = options.provider or provider_of(place.name_servers)
        records = [
            _make_record(registration, record, place.zone, provider, now)
            for registration, record in of_zone
        ]
        zones.append(SheetZone(name, place, provider, records))
    return Sheet(zones, options.ttl, options.contact, now, options.is_removal)


def _make_record(
    registration: Registration,
    record: DnsRecord,
    zone: str,
    provider: DnsProvider | None,
    now: datetime,
) -> SheetRecord:
    form, is_too_long = _form(record.value, provider)
    starts_at = registration.starts_at
    if not registration.signs:
        timing = Timing.DISABLED
    elif starts_at is None:
        timing = Timing.UNKNOWN
    else:
        timing = Timing.LATER if starts_at > now else Timing.NOW
    if starts_at is not None and utc_time(registration.start_date) is not None:
        # With the offset in which it was registered.
        offset = datetime.fromisoformat(registration.start_date or "").tzinfo
        starts_at = starts_at.astimezone(offset)
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


def _form(value: str, provider: DnsProvider | None) -> tuple[ValueForm, bool]:
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


def given_places(names: Iterable[str], zones: Sequence[str]) -> dict[str, DnsPlace]:
    """The place of each name in the longest of `zones`; nothing is asked."""
    find = zone_finder(zones)
    return {name: DnsPlace(find(name) or "") for name in names}


def find_places(
    names: Iterable[str], system_nameservers: Callable[[], Sequence[Address]]
) -> dict[str, DnsPlace]:
    """The place of each name, as DNS has it; without an answer, what is known."""
    unique = list(dict.fromkeys(names))
    try:
        resolver = RecursiveResolver(system_nameservers(), _MAX_IN_FLIGHT)
    except ServiceError as error:
        return dict.fromkeys(unique, DnsPlace(trouble=Trouble.NO_ANSWER, reason=error.message))
    return asyncio.run(look_up_places(unique, resolver))


async def look_up_places(names: Sequence[str], resolver: RecursiveResolver) -> dict[str, DnsPlace]:
    """The place of each of these names, which differ."""
    tasks: dict[str, asyncio.Task[DnsPlace]] = {}

    async def find_place(name: str) -> DnsPlace:
        try:
            zone = await find_zone(name, resolver)
        except NoAnswer as error:
            return DnsPlace(trouble=Trouble.NO_ANSWER, reason=str(error))
        if zone is None:
            return DnsPlace(trouble=Trouble.NO_ZONE, reason="DNS has no zone for it")
        return await once(tasks, zone, find_name_servers)

    async def find_name_servers(zone: str) -> DnsPlace:
        try:
            answer = await look_up(resolver, make_question(zone, NS))
        except NoAnswer as error:
            return DnsPlace(zone, trouble=Trouble.NO_ANSWER, reason=str(error))
        hosts = {to_text(data.target) for data in answer_data(answer, NS)}
        return DnsPlace(zone, tuple(sorted(hosts)))

    places = await asyncio.gather(*map(find_place, names))
    return dict(zip(names, places, strict=True))
