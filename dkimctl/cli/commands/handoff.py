"""`dkimctl handoff`: a sheet for the owner of the DNS."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli import next_steps, options, selected
from dkimctl.cli.checking import open_source, warn_of_wildcards
from dkimctl.cli.doctor_checks import report_remarks
from dkimctl.cli.options import MAX_TTL, App, option, refuse_first
from dkimctl.cli.output import (
    OutputOptions,
    read_format,
    read_output_options,
    read_zone,
    write_chunks,
)
from dkimctl.cli.report import Reporter
from dkimctl.cli.results import AttentionWarnings, show, with_zones
from dkimctl.cli.session import Session, open_session
from dkimctl.dns.check import Checker, delegations
from dkimctl.dns.messages import name_above
from dkimctl.dns.nameserver import system_nameservers
from dkimctl.dns.verdicts import Verdict
from dkimctl.dns.wildcards import find_shadowed
from dkimctl.errors import ExitCode, ServiceError, UsageError, worst
from dkimctl.formats import renderer
from dkimctl.formats.renderer import PER_ZONE, Format, Provider, sound_record
from dkimctl.handoff.providers import DnsPlace, Trouble, find_places, provider_with
from dkimctl.handoff.sheet import Language, SheetFormat, make_sheet, render_sheet
from dkimctl.models import DnsRecord, Outcome, Registration, RegistrationKey, Result, named
from dkimctl.names import Selection, outside_zones
from dkimctl.rotation.life import KeyStage, NextAction, read_keys
from dkimctl.rotation.retirement import retired_results
from dkimctl.text import counted, few, listed, printable, readable

app = App()
SheetRecords = list[tuple[Registration, DnsRecord]]

_MAX_CONTACT = 200  # characters
_MAX_REMARKS = 5  # about where DMARC reports go


@app.command(
    "dkimctl handoff example.com",
    "dkimctl handoff example.com --contact mail@example.net --output dns.html",
    "dkimctl handoff '*.example.com' --language ja --output dns.html",
    "dkimctl handoff example.com --zone example.com --provider route53 --output dns.md",
    "dkimctl handoff --retired --output delete.html",
    "dkimctl handoff shop.example --delegate --output shop.html",
)
def handoff(
    ctx: typer.Context,
    selection: selected.SelectionArgument = None,
    fmt: Annotated[SheetFormat | None, option("--format -f FORMAT",
        f"{', '.join(SheetFormat)} (default: by the suffix of --output, or text). From zone "
        "on, only with --delegate.")] = None,
    language: Annotated[Language | None, option("--language LANGUAGE",
        f"{', '.join(Language)} (default: en).")] = None,
    contact: Annotated[str, option("--contact TEXT", "Whom to tell when it is done.")] = "",
    zone: Annotated[list[str] | None, option("--zone ZONE",
        "Zone of the DNS, which is then not asked; repeatable.")] = None,
    provider: Annotated[str, option("--provider PROVIDER",
        "DNS provider, such as cloudflare (default: by the zone's name servers).")] = "",
    ttl: Annotated[int, option("--ttl SECONDS", "TTL of the records.", min=0, max=MAX_TTL)] = 3600,
    retired: Annotated[bool, option("--retired",
        "Records to delete, of keys that have been replaced.")] = False,
    delegate: Annotated[bool, option("--delegate", "Records that delegate selectors.")] = False,
    assume_successors: options.AssumeSuccessorsOption = False,
    output: options.OutputOption = None,
) -> int:  # fmt: skip
    """Write a sheet for the owner of the DNS: what to add, and how.

    The zones and the provider are looked up in DNS. The records come from the ledger, except those
    of keys that have been replaced and may be removed.

    With --retired, the sheet lists those instead, to delete, after a check of their successors and
    the service's time. With --delegate, it has what a pool of `delegation` needs, once.
    """
    session = open_session(ctx)
    contact = " ".join(contact.split())
    if len(contact) > _MAX_CONTACT:
        hint = f"write at most {_MAX_CONTACT}, such as an email address"
        raise UsageError(f"in --contact: the text has {len(contact)} characters", hint=hint)
    panel = provider_with(provider) if provider else None
    fmt = read_format(SheetFormat, fmt, output)
    if fmt in (None, SheetFormat.TXT):
        fmt = SheetFormat.TEXT
    is_for_dns = bool(fmt and fmt.value in [*Format] and fmt.value not in renderer.NOT_FOR_DNS)
    resources = next((each for each in Provider if panel and each == panel.key), None)
    one = "leave one of them out"
    refuse_first(
        (is_for_dns and not delegate, f"--format {fmt} is only for --delegate",
         f"records of keys: `dkimctl show-dns --format {fmt}`"),
        (retired and delegate, "--delegate cannot be combined with --retired", one),
        (assume_successors and not retired,
         "--assume-successors has no effect without --retired", "leave it out"),
        (language and (is_for_dns or fmt is SheetFormat.JSON),
         f"--language has no effect with --format {fmt}", one),
        (contact and is_for_dns, f"--contact has no effect with --format {fmt}", one),
        (panel and is_for_dns and not (resources and fmt is SheetFormat.TERRAFORM),
         f"--provider {provider} has no effect with --format {fmt}",
         f"{one}; --format terraform takes {listed([*Provider])}"),
    )  # fmt: skip
    zones = [read_zone("--zone", name) for name in zone or ()]
    now = datetime.now(UTC)
    if delegate:
        pools = selected.select_pools(session, selection)
        wanted = [each for domain, pool in pools.items() for each in delegations(pool, domain)]
        if is_for_dns:
            for_tool = read_output_options(
                fmt=Format(fmt), ttl=ttl, zone=zones, provider=resources, output=output, wide=False,
                find_zones=Format(fmt) in PER_ZONE and not zones,
            )  # fmt: skip
            return _write_for_dns(session, wanted, for_tool)
        records = [(each, it._replace(value=name)) for each in wanted if (it := each.record)
                   for name in it.value.split()]  # fmt: skip
        codes = [ExitCode.OK]
    else:
        picked = selected.read_selection(session, selection)
        if retired:  # after a look at their successors in DNS; see `rotate --retired`
            statuses = selected.review_retired(session, picked, assume_successors=assume_successors)
            status = selected.report_not_retired(session, statuses)
            results = retired_results(statuses)
            records = [(each.registration, it) for each in results if (it := sound_record(each))]
        else:
            records, status = _needed_records(session, picked, now)
        codes = [status, selected.warn_unmatched(session, picked)]
    if not records and fmt is not SheetFormat.JSON:
        return worst(codes)
    reporter = session.reporter
    if not zones and len(records) >= 100:  # their lookups may take longer than a second
        reporter.note(f"dkimctl: looking up the zones of {len(records)} names in DNS")
    if not zones and not delegate:
        records = _where_aliases_lead(reporter, records)
    # The names of delegations may lead elsewhere already: their zone is that of the name above.
    above = name_above if delegate else str
    names = {record.fqdn: above(record.fqdn) for _, record in records}
    found = find_places(names.values(), zones)
    places = {name: found[asked] for name, asked in names.items()}
    if zones and (outside := [name for name, place in places.items() if not place.zone]):
        raise outside_zones(outside, zones)
    codes.append(_warn_unknown(reporter, found))
    sheet = make_sheet(
        records, places, now.astimezone(), {} if retired else _add_first(reporter, places, zones),
        panel=panel, ttl=ttl, contact=contact, is_removal=retired,
    )  # fmt: skip
    tells = reporter.shows_notes and not (zones or retired or delegate)
    in_dns = dict.fromkeys(each.sign_domain for each, record in records
                           if tells and places[record.fqdn].name_servers)  # fmt: skip
    count = len(records)
    records.clear()  # there may be 100,000
    chunks = render_sheet(sheet, fmt, language or Language.ENGLISH)
    write_chunks(chunks, output, is_paged=fmt is SheetFormat.TEXT)
    too_long = [named(record) for record in sheet.records if record.is_too_long and not retired]
    if too_long:
        reporter.warn(
            f"longer than the DNS provider's panel takes: {len(too_long)} ({few(too_long)})",
            hint="ask the provider, use its API (`dkimctl publish`), or register a key of 1024 "
            "bits; the sheet says so too",
            code="too_long",
        )
    if in_dns:
        remarks = asyncio.run(report_remarks(system_nameservers(), [*in_dns]))
        for remark in remarks[1 : 1 + _MAX_REMARKS]:
            text = "; ".join(filter(None, (remark.message, remark.hint)))
            reporter.note(f"dkimctl: DMARC: {text}")
    counts = {"records": count, "zones": len(sheet.zones)}
    what = f"{counted(count, 'record')} in {counted(len(sheet.zones), 'zone')}"
    reporter.summarize(f"wrote {output} ({what})" if output else what, counts)
    if count:
        words = next_steps.select_domains(record.sign_domain for record in sheet.records)
        check = next_steps.wait_for(words)
        if retired or delegate:
            check = next_steps.command("check-dns", words, *["--delegation"] * delegate)
        done = "deleted" if retired else "added"
        reporter.note(f"dkimctl: when the records are {done}: {check}")
    return worst(codes)


def _write_for_dns(
    session: Session, registrations: Sequence[Registration], chosen: OutputOptions
) -> ExitCode:
    """Write delegations for a DNS tool, as `show-dns` does records."""
    domains, fmt = list(dict.fromkeys(each.sign_domain for each in registrations)), chosen.fmt
    if len(domains) > 1 and (fmt in PER_ZONE or (chosen.zones and fmt is Format.ZONE)):
        hint = "name one; without --zone, --format zone has absolute names, of all in one file"
        raise UsageError(f"--format {fmt} is for one domain here, not {len(domains)}", hint=hint)
    results = [Result(each, Outcome.EXISTS) for each in registrations]
    chosen = with_zones(chosen, results, session.reporter, name_above)
    status = show(results, chosen, session.reporter).status
    check = next_steps.command("check-dns", next_steps.select_domains(domains), "--delegation")
    session.reporter.note(f"dkimctl: when the records are added: {check}")
    return status


def _where_aliases_lead(reporter: Reporter, records: SheetRecords) -> SheetRecords:
    """The records, but those of aliases (CNAME) at the names that these lead to."""
    try:
        checks = list(Checker(open_source()).check(registration for registration, _ in records))
    except ServiceError:  # no resolver: the search for zones says so
        return records
    led = []
    for (registration, record), check in zip(records, checks, strict=True):
        end = check.alias_end or record.fqdn
        led.append((registration, record._replace(fqdn=end)))
        if end != record.fqdn:
            reporter.warn(
                f"{record.fqdn} is an alias (CNAME), and the sheet has the record where it leads, "
                f"at {printable(end)} (DNS now: {check.finding.verdict})",
                code="alias",
            )
    return led


def _add_first(
    reporter: Reporter, places: Mapping[str, DnsPlace], zones: Sequence[str]
) -> Mapping[str, Sequence[str] | None]:
    """What to add so that the records end nothing that a wildcard answers; None: not known."""
    zone_of = {name: place.zone for name, place in places.items()}
    if zones:  # DNS is not asked
        return find_shadowed(zone_of, lambda _: {})
    unknown = [name for name, place in places.items() if place.trouble is Trouble.NO_ANSWER]
    return warn_of_wildcards(reporter, zone_of) | dict.fromkeys(
        name for name in unknown if not zone_of[name]
    )


def _warn_unknown(reporter: Reporter, places: Mapping[str, DnsPlace]) -> ExitCode:
    """Warn of each reason why zones or servers are not known, with the names that it is about."""
    names_of: dict[tuple[str, str], dict[str, None]] = {}
    for name, place in places.items():
        if place.trouble:
            what = "name servers" if place.zone else "zone"
            names_of.setdefault((what, place.reason), {})[place.zone or name] = None
    for (what, reason), about in names_of.items():
        reporter.warn(
            f"the {what} of {few([*map(readable, about)])} could not be found: {reason}",
            hint="the sheet says so; to name the zone yourself, use --zone ZONE",
            code="place_unknown",
        )
    codes = {Trouble.NO_ANSWER: ExitCode.SERVICE, Trouble.NO_ZONE: ExitCode.NO}
    return worst(codes.get(place.trouble, ExitCode.OK) for place in places.values())


def _needed_records(
    session: Session, selection: Selection, now: datetime
) -> tuple[SheetRecords, ExitCode]:
    """The selected records, without those that have been replaced and may be removed.

    Notes which these are, and warns of what is not usable; that is exit code 1. Raises
    NegativeAnswer if nothing is selected.
    """
    results = selected.registered_results(session, selection)
    ledger = session.open_ledger(for_writing=False)
    past, seen = set[RegistrationKey](), list[datetime]()
    for key in read_keys(ledger, selection, session.config.rotation, now):
        if key.stage is KeyStage.RETIRED or key.action is NextAction.REMOVE:
            past.add(key.key)
        elif key.state == Verdict.PUBLISHED and key.looked_at is not None:
            seen.append(key.looked_at)
    usable, replaced, status = [], [], ExitCode.OK
    warnings = AttentionWarnings(session.reporter)
    for result in results:
        if result.registration.key in past:
            replaced.append(named(result.registration))
        elif (record := renderer.publishable(result)) is not None:
            usable.append((result.registration, record))
        else:
            warnings.add(result)
            status = ExitCode.NO
    if replaced:
        session.reporter.note(
            f"dkimctl: left out, since they have been replaced: {len(replaced)} ({few(replaced)}); "
            "`dkimctl handoff --retired` writes the sheet to delete them"
        )
    if seen:
        are = "was" if len(seen) == 1 else "were"
        session.reporter.note(
            f"dkimctl: {counted(len(seen), 'record')} {are} seen published already, at the last "
            f"look at DNS ({max(seen):%Y-%m-%d} UTC)"
        )
    warnings.close()
    return usable, status
