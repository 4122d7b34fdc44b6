"""Ask the servers of a registration's zone for its record, and find the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dkimctl.dkim import MAX_NAME
from dkimctl.models.registration import DnsRecord, Registration
from dkimctl.publication.checking.queries import QueryRunner, ServerResponse, Source, gather
from dkimctl.publication.comparison import compare_values
from dkimctl.publication.verdicts import (
    Check,
    Finding,
    ServerFinding,
    Verdict,
    combine_findings,
)
from dkimctl.resolver.messages import TXT, Answer, Question, make_question, make_txt_question
from dkimctl.resolver.server import NameServer, NoAnswer, Responder
from dkimctl.resolver.zones import Zone
from dkimctl.text.escaping import printable

_MAX_BURSTS = 128  # servers that get their questions at the same time
_MAX_ALIASES = 8  # in one chain


class _Alias(NamedTuple):
    """The target of a CNAME record; `server` alone sees it so, if servers are given."""

    target: str
    server: NameServer | None


_AliasFindings = Mapping[_Alias, Finding]


class QueryPlan(NamedTuple):
    """What to ask the servers of which zone; `failure`: why they are not known."""

    question: Question
    zone: Zone
    failure: NoAnswer | None = None


class RegistrationCheck:
    """Asks the servers that `source` finds. `expect_absent`: the records should be gone."""

    def __init__(self, source: Source, *, expect_absent: bool) -> None:
        self._source = source
        self._queries = QueryRunner(source)
        self._expect_absent = expect_absent
        self._wanted = Verdict.MISSING if expect_absent else Verdict.PUBLISHED

    async def plan(self, registrations: Sequence[Registration]) -> list[QueryPlan]:
        """What to ask for each; sends each server its questions in one burst beforehand."""
        coroutines = [self._plan(registration) for registration in registrations]
        # Given servers need no lookups, so tasks would only cost time.
        given = self._source.is_given
        plans = [await one for one in coroutines] if given else await gather(coroutines)
        questions: dict[Responder, list[Question]] = {}
        for plan in plans:
            for server in plan.zone.servers:
                questions.setdefault(server.responder, []).append(plan.question)
        slots = asyncio.Semaphore(_MAX_BURSTS)

        async def prefetch(responder: Responder) -> None:
            async with slots:
                await responder.prefetch(questions[responder])

        await asyncio.gather(*map(prefetch, questions))
        return plans

    async def check(self, registration: Registration, plan: QueryPlan) -> Check:
        """What DNS has for a registration, whose record is sound (dkim.record_fault)."""
        record = _record(registration)
        responses: list[ServerResponse] = []
        findings: list[ServerFinding] = []
        try:
            if plan.failure is not None:
                raise plan.failure
            responses = await self._queries.ask_zone(plan.zone, plan.question)
            aliases = await self._follow_all(responses, record)
            findings = await gather(
                self._finding(response, record, plan.zone.name, aliases) for response in responses
            )
            combined = (
                combine_findings(findings, self._wanted)
                if findings
                else _no_zone(registration.sign_domain)
            )
        except NoAnswer as error:
            combined = Finding(Verdict.NO_ANSWER, str(error))
        answers = [response.answer for response in responses if response.answer is not None]
        return Check(
            registration.sign_domain, registration.selector or "", record.fqdn,
            registration.start_date, registration.enable, combined, tuple(findings),
            next((answer.alias for answer in answers if answer.alias), ""),
            is_first_hand=all(answer.is_authoritative for answer in answers),
            regist_date=registration.regist_date,
        )  # fmt: skip

    async def _plan(self, registration: Registration) -> QueryPlan:
        question = make_txt_question(_record(registration).fqdn)
        try:
            return QueryPlan(question, await self._source.zone_with(registration.sign_domain))
        except NoAnswer as error:
            return QueryPlan(question, Zone("", ()), error)

    async def _finding(
        self, response: ServerResponse, record: DnsRecord, zone: str, aliases: _AliasFindings
    ) -> ServerFinding:
        server, answer, _ = response
        if answer is None:
            return _direct_finding(response, record)
        if self._is_followed(answer):
            return ServerFinding(server.label, aliases[self._alias(server, answer)])
        finding = compare_values(record.value, _texts(answer))
        if finding.verdict is Verdict.MISSING and not self._expect_absent:
            finding = await self._at_doubled_name(server, record, answer.zone or zone)
        return ServerFinding(server.label, finding)

    def _is_followed(self, answer: Answer) -> bool:
        """Whether to ask for the target of its alias.

        A server is authoritative for the name it was asked for, and rarely for the target of an
        alias (RFC 2181 section 5.4.1); only given servers are believed.
        """
        return bool(answer.alias) and not (self._source.is_given and answer.values)

    def _alias(self, server: NameServer, answer: Answer) -> _Alias:
        return _Alias(answer.alias, server if self._source.is_given else None)

    async def _follow_all(
        self, responses: Sequence[ServerResponse], record: DnsRecord
    ) -> _AliasFindings:
        """The findings at the targets of aliases, each alias followed once."""
        servers = {
            self._alias(server, answer): server
            for server, answer, _ in responses
            if answer is not None and self._is_followed(answer)
        }
        if not servers:
            return {}
        findings = await gather(
            self._follow(alias.target, server, record) for alias, server in servers.items()
        )
        return dict(zip(servers, findings, strict=True))

    async def _follow(self, target: str, server: NameServer, record: DnsRecord) -> Finding:
        if self._expect_absent:
            return Finding(Verdict.MISMATCH, "the name is an alias (CNAME)")
        seen, failed = {record.fqdn.lower()}, list[ServerFinding]()
        while target not in seen and len(seen) <= _MAX_ALIASES:
            seen.add(target)
            try:
                servers = await self._source.servers_of_alias(target, server)
            except NoAnswer as error:
                return Finding(Verdict.NO_ANSWER, str(error))
            responses = await self._queries.ask(servers, make_question(target, TXT))
            answers = [response.answer for response in responses if response.answer is not None]
            targets = {answer.alias for answer in answers if self._is_followed(answer)}
            findings = [_direct_finding(response, record) for response in responses]
            if not findings:
                return _no_zone(printable(target))
            if not targets:
                return combine_findings([*failed, *findings])
            if len(targets) > 1 or not all(map(self._is_followed, answers)):
                reason = f"the servers of {printable(target)} disagree on whether it is an alias"
                return Finding(Verdict.INCONSISTENT, reason)
            failed += [one for one in findings if one.finding.verdict is Verdict.NO_ANSWER]
            (target,) = targets
        reason = f"its aliases are a loop, or too many, at {printable(target)}"
        return Finding(Verdict.NO_ANSWER, reason)

    async def _at_doubled_name(self, server: NameServer, record: DnsRecord, zone: str) -> Finding:
        """Whether the missing record is at a name with the zone twice: a final dot was left out."""
        doubled = f"{record.fqdn}.{zone}"
        if zone and len(doubled) <= MAX_NAME:
            (response,) = await self._queries.ask([server], make_question(doubled, TXT))
            if response.answer is not None and record.value in _texts(response.answer):
                reason = f"it is at {doubled}: a final dot is missing, so the zone is there twice"
                return Finding(Verdict.MALFORMED, reason)
        return Finding(Verdict.MISSING)


def _direct_finding(response: ServerResponse, record: DnsRecord) -> ServerFinding:
    """What a response says, whatever else might be looked up."""
    if response.answer is None:
        finding = Finding(Verdict.NO_ANSWER, str(response.failure))
    else:
        finding = compare_values(record.value, _texts(response.answer))
    return ServerFinding(response.server.label, finding)


def _record(registration: Registration) -> DnsRecord:
    return registration.record or DnsRecord("", "", "")


def _no_zone(name: str) -> Finding:
    return Finding(Verdict.MISSING, f"DNS has no zone for {name}")


def _texts(answer: Answer) -> list[str]:
    return [value.decode("utf-8", "surrogateescape") for value in answer.values]
