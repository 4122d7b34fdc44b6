"""A sheet for the owner of the DNS: as text, Markdown (CommonMark), HTML or JSON.

The sentences stand in `texts`, the layout in `templates`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from dkimctl.dkim import MAX_STRING, character_strings
from dkimctl.formats.data import json_line
from dkimctl.formats.dns_tools import txt_data
from dkimctl.formats.pages import environment
from dkimctl.formats.table import code, columns_of, fenced, markdown_row, padded_to
from dkimctl.handoff import providers
from dkimctl.handoff.providers import DnsPlace, DnsProvider, Trait, ValueForm, provider_of
from dkimctl.models import DnsRecord, Registration, written_time
from dkimctl.text import printable, readable

# Before the start: for servers and caches to get the record, and for us to check it.
AHEAD = timedelta(days=2)
_WIDTH = 72  # columns of an email
# What a line may not begin with in Japanese (JIS X 4051), and what it may not end with.
_NOT_FIRST = "、。」)・ーっゃゅょぁぃぅぇぉッャュョァィゥェォ"
_NOT_LAST = "「("
_WIDE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6]"
_JOINED = "\ufeff"  # between the characters of data, which `printable` leaves in none
# What a line may break after: a word of data, another word, or a single character of Japanese.
_PIECE = rf"[{_NOT_LAST}]*(?:(?:\S{_JOINED})+\S|{_WIDE}|(?:(?!{_WIDE})\S)+)[{_NOT_FIRST}]*\s*"


class SheetFormat(StrEnum):
    """What `--format` of `handoff` takes. Those from ZONE on are formats of delegations alone."""

    TEXT = "text"
    TXT = "txt"  # the same
    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    ZONE = "zone"
    NSUPDATE = "nsupdate"
    OCTODNS = "octodns"
    DNSCONTROL = "dnscontrol"
    ROUTE53 = "route53"
    POWERDNS = "powerdns"
    TERRAFORM = "terraform"


class Language(StrEnum):
    """What `--language` of `handoff` takes."""

    ENGLISH = "en"
    JAPANESE = "ja"


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
    due: datetime | None  # when it should be in DNS, likewise; None: at once, or no matter when
    #: Lines of a master file: without these, it would end what a wildcard answers. None: not known.
    add_first: Sequence[str] | None = ()
    type: str = "TXT"  # else CNAME or NS, and the value is a name without trailing dot


class SheetZone(NamedTuple):
    """The records of a zone of one type; of an unknown zone, those of a signing domain."""

    name: str
    place: DnsPlace
    provider: DnsProvider | None
    records: list[SheetRecord]


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


def make_sheet(
    registrations: Iterable[tuple[Registration, DnsRecord]], places: Mapping[str, DnsPlace],
    now: datetime, add_first: Mapping[str, Sequence[str] | None] = MappingProxyType({}), *,
    panel: DnsProvider | None = None, ttl: int = 3600, contact: str = "", is_removal: bool = False,
) -> Sheet:  # fmt: skip
    """The sheet for these records; their places, and what to add first, are given by FQDN.

    `panel` is the provider of all zones, whatever their name servers.
    """
    by_zone: dict[tuple[str, str], SheetZone] = {}
    for registration, record in registrations:
        place = places[record.fqdn]
        key = name, _ = place.zone or registration.sign_domain, record.type
        if key not in by_zone:
            by_zone[key] = SheetZone(name, place, panel or provider_of(place.name_servers), [])
        zone = by_zone[key]
        made = _make_record(registration, record, zone, now)
        zone.records.append(made._replace(add_first=add_first.get(record.fqdn, ())))
    return Sheet(list(by_zone.values()), ttl, contact, now, is_removal)


def _make_record(
    registration: Registration, record: DnsRecord, zone: SheetZone, now: datetime
) -> SheetRecord:
    form, is_too_long = ValueForm.WHOLE, False
    if (provider := zone.provider) is not None and record.type == "TXT":
        form, length = provider.form, len(record.value)
        if form is ValueForm.STRINGS:
            length += 3 * -(-length // MAX_STRING) - 1  # quotes, and spaces between strings
        if provider.limit is not None and length > provider.limit:
            is_too_long = Trait.TEXT_MODE not in provider.traits
            form = form if is_too_long else ValueForm.STRINGS
    timing, due = Timing.UNKNOWN, None
    starts_at = registration.starts_at
    if starts_at is not None:
        timing = Timing.LATER if starts_at > now else Timing.NOW
    if not registration.signs:
        timing = Timing.DISABLED
    elif starts_at is not None and starts_at - now > AHEAD:
        due = starts_at - AHEAD
    name = zone.place.zone
    host = record.fqdn[: -len(name) - 1] if name else record.fqdn
    return SheetRecord(
        registration.sign_domain, registration.selector, record.fqdn, host, record.value,
        form, is_too_long, timing, starts_at, due, type=record.type,
    )  # fmt: skip


def render_sheet(sheet: Sheet, fmt: SheetFormat, language: Language) -> Iterable[str]:
    """The text of a sheet, in chunks; JSON has no language."""
    if fmt is SheetFormat.JSON:
        return _json(sheet)
    if fmt is SheetFormat.HTML:
        from markupsafe import Markup

        name = "sheet.html"
        words = Words(
            language, lambda data: Markup("<code>{}</code>").format(printable(data)), Markup
        )
    elif fmt is SheetFormat.MARKDOWN:
        # All data stands in code, so that nothing in it acts as Markdown or HTML.
        name, words = "sheet.md", Words(language, code)
    else:
        # For an email: 72 columns, but for names and values, which are never broken.
        name, words = "sheet.txt", Words(language, lambda data: _JOINED.join(printable(data)))
    templates = environment(__package__)
    templates.filters |= {
        "code": code, "row": markdown_row, "fenced": lambda lines: fenced([*map(printable, lines)]),
        "heading": heading, "wrap": wrapped, "item": item, "columns": columns,
    }  # fmt: skip
    stream = templates.get_template(name).stream(
        page=_page(sheet, words), words=words, sheet=sheet, language=language
    )
    stream.enable_buffering(100)
    return stream


def _json(sheet: Sheet) -> Iterator[str]:
    """One JSON object; times are UTC. None: not known, or none."""

    def record_fields(record: SheetRecord) -> dict[str, object]:
        fields: dict[str, Any] = record._asdict()
        fields["enter"] = fields.pop("form")
        is_text = record.type == "TXT"
        strings = [it.decode() for it in character_strings(record.value)] if is_text else []
        times = {name: written_time(fields[name]) for name in ("starts_at", "due")}
        return {**fields, "ttl": sheet.ttl, "strings": strings, **times}

    action, contact = "delete" if sheet.is_removal else "add", sheet.contact or None
    head = {"made_at": written_time(sheet.made_at), "action": action, "contact": contact}
    yield f'{json_line(head)[:-1]},"zones":['
    for number, zone in enumerate(sheet.zones):
        facts = {
            "zone": zone.place.zone or None,
            "name": readable(zone.name),
            "provider": zone.provider.key if zone.provider else None,
            "name_servers": zone.place.name_servers,
            "trouble": zone.place.trouble or None,
            "reason": zone.place.reason or None,
        }
        yield f'{"," if number else ""}{json_line(facts)[:-1]},"records":['
        for at, record in enumerate(zone.records):
            yield f"{',' if at else ''}{json_line(record_fields(record))}"
        yield "]}"
    yield "]}\n"


class SheetField(NamedTuple):
    """A label, and raw text to copy or read; `is_link`: it is an address of ours."""

    label: str
    data: str
    is_link: bool = False


def _page(sheet: Sheet, words: Words) -> dict[str, object]:
    """What the templates show; zones and records, of which there may be many, when written."""
    records = sheet.records
    rdtypes, count, first = {record.type for record in records}, len(records), records[0]
    delegates = "" if rdtypes == {"TXT"} else "_".join(sorted(rdtypes))
    # The texts that differ between records to add and to delete.
    if sheet.is_removal:
        kind, check, nevers = "delete_", ["delete_check"], ["delete_other", "delete_changed"]
        harmless = "delete_harmless"
    else:
        kind, check = "", ["check_us"]
        nevers = ["never_break", "never_others", "never_second", "never_cname"]
        if delegates:
            kind, check = "delegate_", ["delegate_check"]
            nevers = ["delegate_keep", "never_others", "delegate_second"]
        harmless = "harmless"
        if any(record.add_first is None for record in records):
            harmless = "harmless_unless"
        elif any(record.add_first for record in records):
            harmless = "harmless_with"
    if count > 1 and delegates != "NS":
        check.append("check_first")
    domains = list(dict.fromkeys(readable(record.sign_domain) for record in records))
    named = words.fill("many_domains", count=len(domains))
    if len(domains) <= 4:  # to be named in the first sentence
        named = words.fill("comma").join(map(words.mark, domains))
    how = delegates or ("one" if count == 1 else "many")
    about = words.fill(f"{kind}about_{how}", count=count, domains=named)
    contact = words.fill("contact_none")
    if sheet.contact:
        contact = words.fill("contact", contact=words.mark(sheet.contact))
    numbers = itertools.count(1)
    return {
        "title": words.fill(f"{kind}title"),
        "lead": [about, words.fill(harmless), contact],
        "zones": (_zone_part(zone, words, sheet, numbers) for zone in sheet.zones),
        "only_zone": sheet.zones[0].name if len(sheet.zones) == 1 else "",
        "nevers": map(words.fill, nevers),
        "check_lead": words.paragraph(*check),
        "commands": [
            SheetField(words.fill("unix"), f"dig +short {first.type} {first.fqdn}"),
            SheetField(words.fill("windows"), f"nslookup -type={first.type} {first.fqdn}"),
            SheetField("PowerShell", f"Resolve-DnsName -Type {first.type} {first.fqdn}"),
        ],
    }


def _zone_part(
    zone: SheetZone, words: Words, sheet: Sheet, numbers: Iterator[int]
) -> dict[str, object]:
    """The records of a zone, or of a domain whose zone is not known (`label` says which)."""
    provider, place, name = zone.provider, zone.place, readable(zone.name)
    kind, facts, notices = zone.records[0].type, [], []
    if provider:
        facts.append(SheetField(words.fill("provider"), provider.name))
    if place.name_servers:
        servers = str(words.fill("comma")).join(place.name_servers)
        facts.append(SheetField(words.fill("servers"), servers))
    panel = words.fill("panel")
    if provider:
        source = (kind != "TXT" and provider.alias_source) or provider.source
        facts.append(SheetField(words.fill("instructions"), source, is_link=True))
        panel = words.fill("panel_of", provider=provider.name)
    if not place.zone and place.trouble:
        notices.append(words.fill(f"zone_{place.trouble}"))
    elif place.trouble and not provider:
        notices.append(words.fill("servers_no_answer"))
    names = [zone.name, *(record.sign_domain for record in zone.records)]
    if other := next((name for name in names if readable(name) != name), ""):
        marked = {"ascii": words.mark(other), "readable": words.mark(readable(other))}
        notices.append(words.fill("idn", **marked))
    records, rows, add_first = zone.records, list[SheetField](), dict[str, None]()
    if kind != "TXT":
        if kind == "NS":
            notices.append(words.fill("delegate_others"))
        dot = "." if provider and Trait.TARGET_DOT in provider.traits else ""
        rows = [SheetField(each.host, f"{each.value}{dot}") for each in records]
        facts += [SheetField(words.fill("type"), kind),
                  SheetField(words.fill("ttl"), words.duration(sheet.ttl))]  # fmt: skip
        add_first = dict.fromkeys(line for each in records for line in each.add_first or ())
        records = []
    return {
        "label": words.fill("zone" if place.zone else "domain"),
        "name": zone.name,
        "readable": name if name != zone.name else "",
        "facts": facts,
        "notices": notices,
        "panel": panel,
        "steps": [] if sheet.is_removal else list(_panel_steps(zone, words)),
        "add_first": list(add_first),
        "row_title": SheetField(words.fill("host"), words.fill("target")),
        "rows": rows,
        "records": (_record_part(each, zone, words, sheet, next(numbers)) for each in records),
    }


def _record_part(
    record: SheetRecord, zone: SheetZone, words: Words, sheet: Sheet, number: int
) -> dict[str, object]:
    """A record; of its two `texts`, the first is to be entered. `fields` has the rest."""
    fields = [SheetField(words.fill("type"), "TXT"), SheetField(words.fill("host"), record.host)]
    if record.host != record.fqdn:
        fields.append(SheetField(words.fill("fqdn"), record.fqdn))
    if (name := readable(record.fqdn)) != record.fqdn:
        fields.append(SheetField(words.fill("readable"), name))
    part: dict[str, object] = {
        "title": words.fill("record", number=number),
        "fqdn": record.fqdn,
        "fields": fields,
        "texts": [SheetField(words.fill("delete_value"), record.value)],
        "add_first": record.add_first,
        "deadline": "",
        "is_urgent": False,
        "warning": "",
        "timing": "",
    }
    if sheet.is_removal:
        return part
    fields.append(SheetField(words.fill("ttl"), words.duration(sheet.ttl)))
    texts = [("value_enter", record.value), ("strings_other", txt_data(record.value))]
    if record.form is ValueForm.STRINGS:
        texts = [("strings_enter", txt_data(record.value)), ("value_other", record.value)]
    part["texts"] = [SheetField(words.fill(label), text) for label, text in texts]
    if record.due is not None:
        part["deadline"] = words.fill("by", due=words.date(record.due))
    elif record.timing is not Timing.DISABLED:
        part["deadline"] = words.fill("at_once")
        part["is_urgent"] = record.timing is not Timing.UNKNOWN
    if record.is_too_long and zone.provider:
        limit = zone.provider.limit
        part["warning"] = words.fill("too_long", length=len(record.value), limit=limit)
    if record.timing is Timing.LATER and record.starts_at is not None:
        part["timing"] = words.paragraph("later", "late", start=words.time(record.starts_at))
    else:
        part["timing"] = words.fill(record.timing)
    return part


def _panel_steps(zone: SheetZone, words: Words) -> Iterator[str]:
    """The texts, in the order in which a person needs them."""
    provider, traits = zone.provider, zone.provider.traits if zone.provider else ()
    kind, suffix = zone.records[0].type, words.mark(f".{zone.name}")
    prefix = "" if kind == "TXT" else "delegate_"
    if prefix:
        yield words.fill("delegate_type", type=kind)
    if provider and provider.name_field:
        value_field = {"TXT": provider.value_field, "CNAME": provider.target_field}.get(kind, "")
        names = {"name_field": provider.name_field, "value_field": value_field}
        yield words.fill(f"{prefix}fields" if value_field else "field", **names)
    if zone.place.zone:
        doubled = words.mark(f"{zone.records[0].fqdn}.{zone.name}")
        key = "host_adds" if Trait.ADDS_ZONE in traits else "host_mostly"
        yield words.fill(key, zone=suffix, doubled=doubled)
    if prefix:
        key = "delegate_dot" if Trait.TARGET_DOT in traits else "delegate_target"
        yield words.fill(key, zone=suffix)
        if Trait.PROXIES in traits and kind == "CNAME":
            yield words.fill("delegate_proxies")
        yield words.fill("delegate_refused")
        return
    if provider and provider.form is ValueForm.STRINGS:
        yield words.fill("with_quotes")
    else:
        yield words.fill("adds_quotes" if Trait.ADDS_QUOTES in traits else "no_quotes")
        if Trait.SPLITS in traits:
            yield words.fill("splits")
        elif provider is None or provider.limit is None:
            yield words.fill("maybe_strings")
        if provider and Trait.TEXT_MODE in traits:
            yield words.fill("text_mode", limit=provider.limit)
    if Trait.PROXIES in traits:
        yield words.fill("proxies")


class Words:
    """Says things in a language; `mark` makes markup of names and values, `text` of the rest."""

    def __init__(
        self, language: Language, mark: Callable[[str], str] = printable,
        text: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        self.mark = mark
        self._texts = providers.read_yaml(f"texts/{language}.yaml")
        self._text = text

    def fill(self, key: str, **data: object) -> str:
        """The text, with data that are marked where they need it."""
        return self._text(self._texts[key]).format(**data)

    def paragraph(self, *keys: str, **data: object) -> str:
        """Several texts, one after the other."""
        return self.fill("space").join(self.fill(key, **data) for key in keys)

    def time(self, time: datetime) -> str:
        """Such as `1 March 2027, 00:00 (UTC+09:00)`."""
        offset = time.isoformat()[-6:] if time.utcoffset() else ""
        zone = self._texts["zones"].get(offset, f"UTC{offset}")
        return str(self._texts["time"].format(date=self.date(time), time=time, zone=zone))

    def date(self, time: datetime) -> str:
        """Such as `1 March 2027`."""
        month, weekdays = self._texts["months"][time.month - 1], self._texts["weekdays"]
        weekday = weekdays[time.weekday()]
        return str(self._texts["date"].format(time=time, month=month, weekday=weekday))

    def duration(self, seconds: int) -> str:
        """Seconds, and what they are in a larger unit if that has no rest."""
        for length, unit in (86400, "days"), (3600, "hours"), (60, "minutes"):
            if seconds and seconds % length == 0:
                singular, plural = self._texts[unit]
                count = seconds // length
                larger = singular if count == 1 else plural.format(count)
                return self.fill("seconds_or", count=seconds, larger=larger)
        return self.fill("seconds", count=seconds)


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * min(columns_of(text), _WIDTH)}"


def columns(fields: Sequence[SheetField]) -> str:
    """Labels and data in two columns."""
    longest = max(columns_of(field.label) for field in fields)
    return "\n".join(
        f"  {padded_to(field.label, longest)}  {printable(field.data)}" for field in fields
    )


def item(text: str) -> str:
    return "- " + wrapped(text, _WIDTH - len("- ")).replace("\n", "\n  ")


def wrapped(text: str, width: int = _WIDTH) -> str:
    lines = [""]
    for joined in re.findall(_PIECE, text):
        piece = joined.replace(_JOINED, "")
        if lines[-1] and columns_of(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
