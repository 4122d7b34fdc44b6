"""The checks of `doctor` that ask DNS: resolvers, IPv6, and the DNS targets."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dkimctl.addresses import Address
from dkimctl.cli.doctor_checks import Health, Remark, open_ledger
from dkimctl.cli.session import Session
from dkimctl.dns.messages import SOA, USEFUL, Answer, make_question, rcode_text
from dkimctl.dns.nameserver import (
    NoAnswer,
    RecursiveResolver,
    Server,
    Timeouts,
    system_nameservers,
    validated,
)
from dkimctl.dns.zones import find_zone
from dkimctl.errors import UsageError
from dkimctl.formats.renderer import publishable
from dkimctl.models import Outcome, Registration
from dkimctl.text import few, printable

if TYPE_CHECKING:
    from dkimctl.publishing.targets import ZoneAccess

_CHECK = "resolver"
_TIMEOUTS = Timeouts(udp=(1.0, 2.0), tcp=3.0)
_HINT = "check /etc/resolv.conf or the network settings of this machine"


async def try_resolver(address: Address) -> tuple[str, list[Remark]]:
    """Ask it for the root's SOA record, over UDP and over TCP; why nothing useful came, or ""."""
    question = validated(make_question(".", SOA))  # what every resolver can look up
    server = Server(address.host, address.port, recursion=True, timeouts=_TIMEOUTS)
    try:
        answer = await server.ask(question)
    except NoAnswer as error:
        return str(error), []
    if failure := _failure(answer):
        return failure, []
    remarks = [Remark(_CHECK, Health.OK, f"{address} answers")]
    try:
        tcp_failure = _failure(await server.ask_over_tcp(question))
    except NoAnswer:
        tcp_failure = "it does not answer"
    if tcp_failure:
        text = f"{address}: over TCP, {tcp_failure}, so large answers are lost"
        remarks.append(Remark(_CHECK, Health.WARNING, text, "open TCP port 53 to it"))
    if not answer.is_validated:
        text = f"{address} does not validate DNSSEC"
        hint = "`dkimctl check-dns` then does not see signatures that have expired"
        remarks.append(Remark(_CHECK, Health.NOTE, text, hint))
    return "", remarks


async def find_zone_of(domain: str, nameservers: Sequence[Address]) -> Remark:
    """Whether the resolvers find the zone of a registered domain."""
    name = printable(domain)
    try:
        zone = await find_zone(domain, RecursiveResolver(nameservers, 1))
    except NoAnswer as error:
        return Remark(_CHECK, Health.WRONG, f"no zone of {name} is found: {error}", _HINT)
    if zone is None:
        hint = "check that the domain is registered and delegated"
        return Remark(_CHECK, Health.WARNING, f"DNS has no zone of {name}", hint)
    return Remark(_CHECK, Health.OK, f"{name} is in the zone {printable(zone)}")


def _failure(answer: Answer) -> str:
    return "" if answer.rcode in USEFUL else f"it answers {rcode_text(answer.rcode)}"


def check_resolver(session: Session) -> Iterator[Remark]:
    domain = None
    with suppress(UsageError):  # what is wrong with the account or the ledger is said elsewhere
        if not session.profile.is_sandbox:  # where domains may be made up
            domain = next(
                (registration.key.sign_domain for registration in _registered(session, 1)), None
            )
    yield from resolver_findings(system_nameservers(), domain)


def resolver_findings(nameservers: Sequence[Address], domain: str | None) -> Iterator[Remark]:
    """What each resolver answers, and whether they find the zone of a domain."""
    reports = [(address, *asyncio.run(try_resolver(address))) for address in nameservers]
    works = any(not failure for _, failure, _ in reports)
    for address, failure, remarks in reports:
        if failure:
            state = Health.WARNING if works else Health.WRONG
            yield Remark(_CHECK, state, f"{address}: {failure}", _HINT)
        yield from remarks
    if works and domain is not None:
        yield asyncio.run(find_zone_of(domain, nameservers))


def check_ipv6(_session: Session) -> Iterator[Remark]:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            # A root server (F): connecting a UDP socket to it sends nothing, but needs a route.
            sock.connect(("2001:500:2f::f", 53))
    except OSError:
        text = "there is no route: name servers that have only IPv6 addresses cannot be asked"
        yield Remark("IPv6", Health.NOTE, text)
    else:
        yield Remark("IPv6", Health.OK, "there is a route")


def check_targets(session: Session) -> Iterator[Remark]:
    """What `publish --check-access` tries, of some registrations."""
    if not session.has_dns_targets:
        yield Remark("DNS targets", Health.OK, "none: DNS is changed by hand")
        return
    from dkimctl.publishing.targets import check_access, open_targets

    targets = open_targets(session.config, session.profile.name, session.secrets)
    registrations = _registered(session, 20)  # registrations whose zones are tried
    report = check_access(registrations, targets, tries_named=True)
    yield from map(_of_zone, report.zones)
    if report.uncovered:
        names = few([registration.sign_domain for registration in report.uncovered])
        hint = "add their zones to `dns` in the config file"
        yield Remark("DNS targets", Health.WARNING, f"no target has the zone of {names}", hint)


def _of_zone(zone: ZoneAccess) -> Remark:
    access = zone.access
    where = f"{printable(zone.target)}, zone {printable(zone.zone)}" if zone.zone else zone.target
    reason = f": {access.reason}" if access.reason else ""
    if False in (access.readable, access.writable):
        return Remark("DNS targets", Health.WRONG, f"{where}{reason}", access.hint)
    if None in (access.readable, access.writable):
        return Remark("DNS targets", Health.UNKNOWN, f"{where}{reason}", access.hint)
    return Remark("DNS targets", Health.OK, f"{where}: can be read and written")


def _registered(session: Session, most: int) -> list[Registration]:
    """Some registrations whose records may be published."""
    from dkimctl.registration.outcomes import verified

    with open_ledger(session) as ledger:
        signing = (registration for registration in ledger.ours() if registration.signs)
        sound = (
            registration
            for registration in signing
            if publishable(verified(registration, Outcome.EXISTS))
        )
        return list(itertools.islice(sound, most))
