"""Which servers are asked about a name, what they answer, and what that means for a record."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from dkimctl.addresses import Address
from dkimctl.dns import messages, verdicts
from dkimctl.dns.messages import TXT, Answer, Question, make_question, make_txt_question, to_text
from dkimctl.dns.nameserver import NameServer, NoAnswer, NoRoute, RecursiveResolver, Server
from dkimctl.dns.verdicts import Finding, ServerFinding, Verdict, combine_findings
from dkimctl.dns.zones import Zone, ZoneServers
from dkimctl.models import DnsRecord
from dkimctl.names import MAX_NAME, is_name
from dkimctl.text import printable

_MAX_LOOKUPS = 32  # at a time, at a resolver that others use as well
_MAX_DELEGATIONS = 4  # below the zone of the signing domain
_MAX_DROPPED = 2  # questions beside records, of a server
_SERVFAIL = "it answers SERVFAIL"

_T = TypeVar("_T")


class Source:
    """Finds the servers to ask: those of each zone, found by `zones`, or given ones, by label."""

    def __init__(
        self, zones: ZoneServers | None = None,
        given: Mapping[str, Server | RecursiveResolver] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        #: Whether the servers are named by the user: they are the same for all names, and what
        #: they know from other servers counts as well.
        self.is_given = zones is None
        self._zones = zones
        #: What servers answered for names beside records; for one chunk of checks.
        self.answers_beside: dict[tuple[Any, Question], ServerResponse] = {}
        #: Questions beside records that servers have not answered, in the same chunk.
        self.dropped: dict[Server, tuple[list[Question], asyncio.Lock]] = {}
        named = [NameServer(label, frozenset((label,)), item) for label, item in given.items()]
        self._given = Zone("", named)
        self._servers = given.values()

    async def prefetch(self, names: Iterable[str]) -> None:
        """See ZoneServers.prefetch."""
        if self._zones is not None:
            await self._zones.prefetch(names)

    async def zone_with(self, name: str) -> Zone:
        """The zone of a name, "" if not known; no servers: DNS has none. Raises NoAnswer."""
        if self._zones is None:
            return self._given
        return await self._zones.zone_with(name) or Zone("", ())

    async def zone(self, name: str) -> Zone:
        """The zone with this name, which the zone above delegates. Raises NoAnswer."""
        if self._zones is None:
            raise NoAnswer(f"it names other servers for {name}")
        return await self._zones.zone(name)

    async def unresolved(self, questions: Sequence[Question]) -> list[Finding | None]:
        """What keeps resolvers from each record: DNSSEC, or no answer; None if nothing does."""
        if self._zones is None:
            return [None] * len(questions)
        resolver = self._zones.resolver

        async def why(question: Question) -> Finding | None:
            try:
                answer = await resolver.ask(question)
            except NoAnswer as error:
                return Finding(Verdict.NO_ANSWER, f"{question}: {error}; the servers have it")
            return Finding(Verdict.BOGUS, answer.bogus) if answer.bogus else None

        await resolver.prefetch(questions)
        return await gather(map(why, questions))

    def forget(self) -> None:
        """Empty all caches, and ask servers again that did not answer."""
        if self._zones is not None:
            self._zones.forget()
        for server in self._servers:
            server.reset()


def authoritative(nameservers: Sequence[Address], max_in_flight: int) -> Source:
    """Every authoritative server of each name's zone, found through these resolvers."""
    resolver = RecursiveResolver(nameservers, min(max_in_flight, _MAX_LOOKUPS))
    return Source(ZoneServers(resolver, partial(Server, max_in_flight=max_in_flight)))


def given(addresses: Sequence[Address], max_in_flight: int) -> Source:
    """These servers, for every name."""
    server = partial(Server, max_in_flight=max_in_flight, recursion=True)
    return Source(given={str(address): server(*address) for address in addresses})


def recursive(nameservers: Sequence[Address], max_in_flight: int) -> Source:
    """The resolvers of this machine, each if the one before does not answer."""
    return Source(given={"the system's resolver": RecursiveResolver(nameservers, max_in_flight)})


class ServerResponse(NamedTuple):
    """A server's answer, if it is to be trusted, or else why there is none."""

    server: NameServer
    answer: Answer | None
    failure: NoAnswer | None = None
    zone: str = ""  # the closest one that it refers to, or has
    denial: str = ""  # why resolvers may take it that there is no such name, though it answers


async def ask(source: Source, server: NameServer, question: Question) -> ServerResponse:
    """Answers that are second-hand or contradict themselves are not to be trusted."""
    if isinstance(server.responder, NoAnswer):
        return ServerResponse(server, None, server.responder)
    try:
        answer = await server.responder.ask(question)
    except NoAnswer as error:
        return ServerResponse(server, None, error)
    # Asked for the name servers of a zone, it may well refer to them.
    is_referral = question.rdtype == messages.NS and answer.delegated == to_text(question.name)
    if answer.rcode not in messages.USEFUL:
        failure = f"it answers {messages.rcode_text(answer.rcode)}"
    elif answer.rcode == messages.NXDOMAIN and answer.values:
        failure = "it answers NXDOMAIN, but with a record of that name"
    elif answer.is_authoritative or (source.is_given and answer.is_recursive) or is_referral:
        return ServerResponse(server, answer, zone="" if answer.alias else answer.zone)
    else:
        lame = NoAnswer("it is not authoritative for the zone (lame)")
        return ServerResponse(server, None, lame, zone=answer.delegated)
    return ServerResponse(server, None, NoAnswer(failure))


async def ask_zone(
    source: Source, zone: Zone, question: Question
) -> tuple[Zone, list[ServerResponse]]:
    """The zone, or one below that its servers know of, and what all respond that resolvers ask.

    A server that answers for the name itself counts, although others refer to a zone below: it
    still has that zone's records in its own. Of name servers (NS), it is the referral that each
    gives, or those in the zone if it has that. Raises NoAnswer.
    """
    if question.rdtype == messages.NS:
        asked = questions_of(zone, question)[0]  # as it was in the burst
        return zone, await gather(ask(source, server, asked) for server in zone.servers)
    depth, above = 0, list[ServerResponse]()
    while True:
        asked, *beside = questions_of(zone, question)
        has_come = (isinstance(each.responder, Server) and each.responder.has(asked)
                    for each in zone.servers)  # fmt: skip
        asking = (_ask_beside(source, each, zone, asked, beside) for each in zone.servers)
        responses = [await each for each in asking] if all(has_come) else await gather(asking)
        answered = [response for response in responses if response.answer is not None]
        known = (each.zone for each in responses if each.zone.endswith(f".{zone.name}"))
        below = next(known, "") if zone.name else ""
        if not below or depth == _MAX_DELEGATIONS:
            break
        try:
            zone, depth = await source.zone(below), depth + 1
        except NoAnswer:
            if not answered:
                raise
            break
        above += answered
    responders = {server.responder for server in zone.servers}
    responses += [each for each in above if each.server.responder not in responders]
    # An address without a route does not count, if its host answers at another one.
    answering = {host for each in responses if each.answer for host in each.server.hosts}
    return zone, [
        await _with_cause(source, zone, response)
        for response in responses
        if not isinstance(response.failure, NoRoute) or answering.isdisjoint(response.server.hosts)
    ]


async def _ask_beside(
    source: Source, server: NameServer, zone: Zone, question: Question, beside: Sequence[Question]
) -> ServerResponse:
    """If it has the record, it is asked whether other answers deny that: see `questions_of`."""
    response = await ask(source, server, question)
    record = response.answer
    if record is None or not (record.values or record.alias):
        return response
    closest, denial = "", ""
    for other in beside:
        key = server.responder, other
        if key not in source.answers_beside:
            source.answers_beside[key] = await _ask_more(source, server, other)
        answer = source.answers_beside[key].answer
        if answer is None or answer.alias:
            continue
        zone_there = to_text(other.name) if answer.data(messages.SOA) else answer.zone
        closest = max(closest, zone_there, key=len)
        if answer.rcode == messages.NXDOMAIN and zone.is_secure:  # else resolvers ignore it
            denial = f"it answers NXDOMAIN for {to_text(other.name)}"
        elif not record.is_wildcard and messages.denies(answer, question):
            denial = f"it answers {other} with an NSEC record that denies the record"
    if denial:
        denial += (
            " (RFC 8020, RFC 8198), so resolvers that remember this do not ask for the record; "
            f"with PowerDNS: `pdnsutil rectify-zone {zone.name if is_name(zone.name) else 'ZONE'}`"
        )
    return response._replace(zone=closest, denial=denial)


async def _ask_more(source: Source, server: NameServer, question: Question) -> ServerResponse:
    """The response to a question beside the record. Some servers drop such questions.

    They are asked one at a time where the burst brought nothing, and no more after two.
    """
    responder = server.responder
    if not isinstance(responder, Server) or responder.has(question):
        return await ask(source, server, question)
    dropped, lock = source.dropped.setdefault(responder, ([], asyncio.Lock()))
    async with lock:
        if len(dropped) >= _MAX_DROPPED:
            return ServerResponse(server, None)
        response = await ask(source, server, question)
        if response.answer is None:
            dropped.append(question)
        return response


def questions_of(zone: Zone, question: Question) -> list[Question]:
    """The question as resolvers ask it, and what to ask servers beside, in a zone that is known.

    NXDOMAIN for the name above, such as `_domainkey`, would deny all names below (RFC 8020). In a
    signed zone, the proof that there is no SOA record at the name has to list its TXT record (RFC
    8198). And an SOA record shows a zone that is deeper than expected.
    """
    if not zone.name:
        return [question]
    asked, beside = question, []
    if zone.is_secure:
        asked = question._replace(flags=question.flags | messages.DNSSEC_OK)
        beside = [messages.soa_at(asked)]
    above, apex = messages.soa_at(question, above=True), _soa(zone.name)
    if above.section != apex.section and above.section.endswith(apex.section):
        beside.append(above)
    return [asked, *beside]


@lru_cache
def _soa(zone: str) -> Question:
    return make_question(zone, messages.SOA)


async def _with_cause(source: Source, zone: Zone, response: ServerResponse) -> ServerResponse:
    """Whether SERVFAIL is for the name alone, or for the whole zone, if that is known."""
    if str(response.failure) != _SERVFAIL or not zone.name:
        return response
    soa, failure = await _ask_soa(source, response.server, zone)
    if soa is not None:
        cause = "for this name alone: its data there is broken"
    elif str(failure) == _SERVFAIL:
        cause = "for the whole zone: it is not loaded there, or has expired"
    else:
        return response
    return response._replace(failure=NoAnswer(f"{_SERVFAIL} {cause}; its log says more"))


async def _ask_soa(
    source: Source, server: NameServer, zone: Zone, *, again: bool = False
) -> tuple[Any, NoAnswer | None]:
    """The SOA record of a zone at a server, which is asked for it once, or `again`; or why not."""
    key = server.responder, _soa(zone.name)
    if again or key not in source.answers_beside:
        source.answers_beside[key] = await ask(source, server, _soa(zone.name))
    response = source.answers_beside[key]
    records = response.answer.data(messages.SOA) if response.answer else []
    return records[0] if records else None, response.failure


async def why_apart(
    source: Source, zone: Zone, question: Question, responses: Sequence[ServerResponse],
    findings: Sequence[ServerFinding], wanted: Verdict,
) -> str:  # fmt: skip
    """Why servers disagree, by the serial numbers of their zones, and what to do; "" if unknown."""
    judged = [
        (each.server, each.answer, finding.finding.verdict is wanted)
        for each, finding in zip(responses, findings, strict=True)
        if each.answer is not None and each.server.is_regular
    ]
    if not zone.name or any(answer.alias for _, answer, _ in judged):
        return ""
    records = [(await _ask_soa(source, server, zone))[0] for server, _, _ in judged]
    if len({soa.mname for soa in records if soa}) > 1:
        return "they name different primaries in their SOA records: publish the record at each"
    serials: dict[bool, set[int]] = {True: set(), False: set()}
    for soa, (_, _, is_good) in zip(records, judged, strict=True):
        if soa is None:
            return ""
        serials[is_good].add(soa.serial)
    good, bad = serials[True], serials[False]
    if not (good and bad):
        return ""
    if good == bad and len(good) == 1:
        for server, before, _ in judged:  # unless a transfer has come between the questions
            answer = (await ask(source, server, question)).answer
            soa, _ = await _ask_soa(source, server, zone, again=True)
            if answer is None or answer.values != before.values or soa not in records:
                return ""
        return f"all have serial number {good.pop()}, so no transfer comes: raise it at the primary"
    # Serial numbers wrap around (RFC 1982).
    ahead = {(ours - theirs) % (1 << 32) < 1 << 31 for ours in good for theirs in bad}
    numbers = ", not ".join(", ".join(map(str, sorted(of))) for of in (bad, good))
    if good & bad or len(ahead) > 1:
        return ""
    if ahead == {True}:
        return f"the others have an older zone (serial number {numbers}): wait for the transfer"
    return f"the others have a newer zone (serial number {numbers}): make the change again"


async def gather(coroutines: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """All the results. A single coroutine is awaited without the cost of a task."""
    work = list(coroutines)
    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work)


def direct_finding(response: ServerResponse, record: DnsRecord) -> Finding:
    """What a response says, whatever else might be looked up."""
    if response.answer is None:
        return Finding(Verdict.NO_ANSWER, str(response.failure))
    return denied(verdicts.compare_values(record.value, response.answer.texts), response)


def denied(finding: Finding, response: ServerResponse) -> Finding:
    """The finding, if no answer of the server denies that the record is there."""
    if finding.verdict not in verdicts.ACCEPTED or not response.denial:
        return finding
    return Finding(Verdict.DENIED, response.denial, frozenset((Verdict.DENIED, finding.verdict)))


def no_zone(name: str) -> Finding:
    return Finding(Verdict.MISSING, f"DNS has no zone for {name}")


def located(finding: Finding, zone: Zone, question: Question) -> Finding:
    """The finding; if there is no answer, its reason names the zone and the question."""
    if finding.verdict is not Verdict.NO_ANSWER:
        return finding
    where = f"{zone.name}: {question}" if zone.name else str(question)
    return finding._replace(reason=f"{where}: {finding.reason}")


async def find_at_doubled_name(
    source: Source, server: NameServer, record: DnsRecord, zone: str
) -> Finding:
    """Whether the missing record is at a name with the zone twice: a final dot was left out."""
    doubled = f"{record.fqdn}.{zone}"
    if zone not in ("", ".") and len(doubled) <= MAX_NAME:
        response = await ask(source, server, make_txt_question(doubled))
        if response.answer is not None and record.value in response.answer.texts:
            reason = f"it is at {doubled}: a final dot is missing, so the zone is there twice"
            return Finding(Verdict.MALFORMED, reason)
    return Finding(Verdict.MISSING)


async def is_from_wildcard(
    source: Source, server: NameServer, record: DnsRecord, answer: Answer
) -> bool:
    """Whether a name beside the record's, which does not exist, has the same (RFC 4592)."""
    sibling = f"{os.urandom(8).hex()}.{record.fqdn.partition('.')[2]}"
    if len(sibling) > MAX_NAME:
        return False
    response = await ask(source, server, make_txt_question(sibling))
    other, wanted = response.answer, (answer.alias, sorted(answer.values))
    return other is not None and (other.alias, sorted(other.values)) == wanted


class AliasTarget(NamedTuple):
    """What is at the end of a chain of aliases, and the zones on the way."""

    finding: Finding
    zones: Sequence[Zone] = ()
    name: str = ""  # the end, or how far it is known; "": there is none


def is_followed(source: Source, answer: Answer) -> bool:
    """Whether to ask for the target of its alias: only given servers are believed about that.

    Others are rarely authoritative for it (RFC 2181 section 5.4.1).
    """
    return bool(answer.alias) and not (source.is_given and answer.values)


async def follow_alias(
    source: Source, target: str, server: NameServer, record: DnsRecord
) -> AliasTarget:
    """Where the alias (CNAME record) leads that a server has at the name of a record."""
    names = [record.fqdn.lower()]
    zones: list[Zone] = []
    failed: list[ServerFinding] = []
    while target not in names and len(names) <= messages.MAX_ALIASES:
        names.append(target)
        question = make_question(target, TXT)
        try:
            zone, responses = await _ask_target(source, target, server, question)
        except NoAnswer as error:
            return AliasTarget(Finding(Verdict.NO_ANSWER, str(error)), zones, target)
        zones.append(zone)
        findings = [
            ServerFinding(response.server.label, direct_finding(response, record))
            for response in responses
        ]
        answers = [response.answer for response in responses if response.answer is not None]
        if source.is_given and not answers:  # such as REFUSED, since it has another zone
            reason = f"its alias leads to {printable(target)}: {responses[0].failure}"
            return AliasTarget(Finding(Verdict.NO_ANSWER, reason), name=target)
        # The targets that servers have, "" for a server without an alias.
        targets = {answer.alias if is_followed(source, answer) else "" for answer in answers}
        if not any(targets):
            finding = no_zone(printable(target))
            if failed or findings:
                finding = located(combine_findings([*failed, *findings]), zone, question)
            return AliasTarget(finding, zones, target)
        if len(targets) > 1:
            reason = f"the servers of {printable(target)} give different aliases, or none"
            return AliasTarget(Finding(Verdict.INCONSISTENT, reason), zones)
        (target,) = targets
        failed += [
            finding._replace(finding=located(finding.finding, zone, question))
            for finding in findings
            if finding.finding.verdict is Verdict.NO_ANSWER
        ]
    # A chain that resolvers do not follow to its end.
    last = printable(names[-1])
    reason = f"more than {messages.MAX_ALIASES} aliases (CNAME) in a row, up to {last}"
    if target in names:
        reason = f"its aliases (CNAME) are a loop, at {printable(target)}"
    return AliasTarget(Finding(Verdict.MALFORMED, reason), zones)


async def _ask_target(
    source: Source, target: str, server: NameServer, question: Question
) -> tuple[Zone, list[ServerResponse]]:
    """The zone of a target, and what its servers answer. Raises NoAnswer."""
    if source.is_given:
        return await ask_zone(source, Zone("", [server]), question)
    try:
        zone = await source.zone_with(target)
    except NoAnswer:
        # Resolvers fail at a loop. But an alias is not the apex of a zone.
        zone = await source.zone_with(messages.name_above(target))
        if not zone.servers:
            raise
    return await ask_zone(source, zone, question)
