"""DNS: the resolvers of this machine, IPv6, and the DNS targets."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dkimctl.cli.doctor.findings import Finding, State
from dkimctl.cli.doctor.ledger import open_ledger
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError
from dkimctl.models.registration import Outcome, Registration
from dkimctl.text.escaping import few, printable

if TYPE_CHECKING:
    from dkimctl.publishing.targets import ZoneAccess
    from dkimctl.text.addresses import Address

_MOST_TRIED = 20  # registrations whose zones are tried
# A root server (F): connecting a UDP socket to it sends nothing, but needs a route.
_IPV6_ADDRESS = "2001:500:2f::f"


def check_resolver(session: Session) -> Iterator[Finding]:
    from dkimctl.dns.nameserver import system_nameservers

    domain = None
    with suppress(UsageError):  # what is wrong with the account or the ledger is said elsewhere
        if not session.profile.is_sandbox:  # where domains may be made up
            domain = next((one.key.sign_domain for one in _registered(session, 1)), None)
    yield from resolver_findings(system_nameservers(), domain)


def resolver_findings(nameservers: Sequence[Address], domain: str | None) -> Iterator[Finding]:
    """What each resolver answers, and whether they find the zone of a domain."""
    from dkimctl.cli.doctor.resolver import find_zone_of, try_resolver

    reports = [asyncio.run(try_resolver(address)) for address in nameservers]
    works = any(report.answers for report in reports)
    for report in reports:
        yield from report.findings(is_spared=works)
    if works and domain is not None:
        yield asyncio.run(find_zone_of(domain, nameservers))


def check_ipv6(_session: Session) -> Iterator[Finding]:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.connect((_IPV6_ADDRESS, 53))
    except OSError:
        text = "there is no route: name servers that have only IPv6 addresses cannot be asked"
        yield Finding("IPv6", State.NOTE, text)
    else:
        yield Finding("IPv6", State.OK, "there is a route")


def check_targets(session: Session) -> Iterator[Finding]:
    """What `publish --check-access` tries, of some registrations."""
    if not session.has_dns_targets:
        yield Finding("DNS targets", State.OK, "none: DNS is changed by hand")
        return
    from dkimctl.publishing.targets import check_access, open_targets

    targets = open_targets(session.config, session.profile.name, session.secrets)
    registrations = _registered(session, _MOST_TRIED)
    report = check_access(registrations, targets, tries_named=True)
    yield from map(_of_zone, report.zones)
    if report.uncovered:
        names = few([one.sign_domain for one in report.uncovered])
        hint = "add their zones to `dns` in the config file"
        yield Finding("DNS targets", State.WARNING, f"no target has the zone of {names}", hint)


def _of_zone(zone: ZoneAccess) -> Finding:
    access = zone.access
    where = f"{printable(zone.target)}, zone {printable(zone.zone)}" if zone.zone else zone.target
    reason = f": {access.reason}" if access.reason else ""
    if False in (access.readable, access.writable):
        return Finding("DNS targets", State.WRONG, f"{where}{reason}", access.hint)
    if None in (access.readable, access.writable):
        return Finding("DNS targets", State.UNKNOWN, f"{where}{reason}", access.hint)
    return Finding("DNS targets", State.OK, f"{where}: can be read and written")


def _registered(session: Session, most: int) -> list[Registration]:
    """Some registrations whose records may be published."""
    from dkimctl.registration.outcomes import verified
    from dkimctl.render.renderer import publishable

    with open_ledger(session) as ledger:
        signing = (one for one in ledger.ours() if one.signs)
        sound = (one for one in signing if publishable(verified(one, Outcome.EXISTS)))
        return list(itertools.islice(sound, most))
