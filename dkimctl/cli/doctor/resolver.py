"""One resolver of this machine: UDP, TCP, and DNSSEC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dkimctl.cli.doctor.findings import Finding, State
from dkimctl.dns.messages import SOA, USEFUL, Answer, make_question, rcode_text
from dkimctl.dns.nameserver import NoAnswer, RecursiveResolver, Server, Timeouts, validated
from dkimctl.dns.zones import find_zone
from dkimctl.text.addresses import Address
from dkimctl.text.escaping import printable

_CHECK = "resolver"
_TIMEOUTS = Timeouts(udp=(1.0, 2.0), tcp=3.0)
_ROOT = "."  # what every resolver can look up
_HINT = "check /etc/resolv.conf or the network settings of this machine"


class ResolverReport(NamedTuple):
    """What a resolver answered; `failure` says why nothing useful."""

    address: Address
    failure: str
    validates: bool
    tcp_failure: str

    @property
    def answers(self) -> bool:
        return not self.failure

    def findings(self, *, is_spared: bool) -> Iterator[Finding]:
        """`is_spared`: another one answers, if this one does not."""
        if self.failure:
            state = State.WARNING if is_spared else State.WRONG
            yield Finding(_CHECK, state, f"{self.address}: {self.failure}", _HINT)
            return
        yield Finding(_CHECK, State.OK, f"{self.address} answers")
        if self.tcp_failure:
            text = f"{self.address}: over TCP, {self.tcp_failure}, so large answers are lost"
            yield Finding(_CHECK, State.WARNING, text, "open TCP port 53 to it")
        if not self.validates:
            text = f"{self.address} does not validate DNSSEC"
            hint = "`dkimctl check-dns` then does not see signatures that have expired"
            yield Finding(_CHECK, State.NOTE, text, hint)


async def try_resolver(address: Address) -> ResolverReport:
    """Ask it for the root's SOA record, over UDP and over TCP."""
    question = validated(make_question(_ROOT, SOA))
    server = Server(address.host, address.port, recursion=True, timeouts=_TIMEOUTS)
    try:
        answer = await server.ask(question)
    except NoAnswer as error:
        return ResolverReport(address, str(error), validates=False, tcp_failure="")
    if failure := _failure(answer):
        return ResolverReport(address, failure, validates=False, tcp_failure="")
    try:
        tcp_failure = _failure(await server.ask_over_tcp(question))
    except NoAnswer:
        tcp_failure = "it does not answer"
    return ResolverReport(address, "", answer.is_validated, tcp_failure)


async def find_zone_of(domain: str, nameservers: Sequence[Address]) -> Finding:
    """Whether the resolvers find the zone of a registered domain."""
    name = printable(domain)
    try:
        zone = await find_zone(domain, RecursiveResolver(nameservers, 1))
    except NoAnswer as error:
        return Finding(_CHECK, State.WRONG, f"no zone of {name} is found: {error}", _HINT)
    if zone is None:
        hint = "check that the domain is registered and delegated"
        return Finding(_CHECK, State.WARNING, f"DNS has no zone of {name}", hint)
    return Finding(_CHECK, State.OK, f"{name} is in the zone {printable(zone)}")


def _failure(answer: Answer) -> str:
    return "" if answer.rcode in USEFUL else f"it answers {rcode_text(answer.rcode)}"
