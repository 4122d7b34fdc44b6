"""Ask the servers of a registration's zone for its record, and find the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dkimctl.dns.aliases import AliasFollower, AliasTarget
from dkimctl.dns.authorities import Zone
from dkimctl.dns.conclusion import Conclusion, as_bogus, conclude
from dkimctl.dns.findings import direct_finding, located, no_zone
from dkimctl.dns.messages import Question, make_txt_question
from dkimctl.dns.nameserver import NameServer, NoAnswer, Responder
from dkimctl.dns.probes import find_at_doubled_name, is_from_wildcard
from dkimctl.dns.queries import QueryRunner, ServerResponse, Source, gather
from dkimctl.dns.verdicts import (
    ACCEPTED,
    Check,
    Finding,
    ServerFinding,
    Verdict,
    combine_findings,
)
from dkimctl.models.registration import DnsRecord, Registration

_MAX_BURSTS = 128  # servers that get their questions at the same time
_NO_WILDCARD = ACCEPTED | {Verdict.MISSING, Verdict.NO_ANSWER}  # or it does not matter


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
        self._aliases = AliasFollower(source, self._queries)
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

    async def check(self, registration: Registration, plan: QueryPlan) -> Conclusion:
        """What DNS has for a registration, whose record is sound (dkim.record_fault)."""
        record = _record(registration)
        try:
            if plan.failure is not None:
                raise plan.failure
            zone, responses = await self._queries.ask_zone(plan.zone, plan.question)
        except NoAnswer as error:
            return Conclusion(_check(registration, Finding(Verdict.NO_ANSWER, str(error))))
        targets: dict[NameServer, AliasTarget] = {}
        if not self._expect_absent:
            targets = await self._aliases.follow(responses, record)
        findings = await gather(
            self._finding(response, record, zone.name, targets.get(response.server))
            for response in responses
        )
        finding = no_zone(registration.sign_domain)
        if findings:
            finding = located(combine_findings(findings, self._wanted), zone, plan.question)
        zones = [zone, *(zone for target in targets.values() for zone in target.zones)]
        check = _check(registration, finding, findings, _alias(responses))
        return conclude(check, zones, is_wanted=not self._expect_absent)

    async def validate(self, checks: Sequence[Check]) -> list[Check]:
        """The checks of secure records, after the resolver was asked for all of them.

        It is asked for none before their servers have it, since it would remember the absence.
        """
        reasons = await self._source.why_bogus([make_txt_question(one.fqdn) for one in checks])
        return [
            as_bogus(check, reason) if reason else check
            for check, reason in zip(checks, reasons, strict=True)
        ]

    async def _plan(self, registration: Registration) -> QueryPlan:
        question = make_txt_question(_record(registration).fqdn)
        try:
            return QueryPlan(question, await self._source.zone_with(registration.sign_domain))
        except NoAnswer as error:
            return QueryPlan(question, Zone("", ()), error)

    async def _finding(
        self, response: ServerResponse, record: DnsRecord, zone: str, target: AliasTarget | None
    ) -> ServerFinding:
        server, answer, _ = response
        finding = direct_finding(response, record).finding
        if answer is None:
            return ServerFinding(server.label, finding)
        if target is not None:
            finding = target.finding
        elif self._aliases.is_followed(answer):
            finding = Finding(Verdict.MISMATCH, "the name is an alias (CNAME)")
        if finding.verdict not in _NO_WILDCARD:
            if await is_from_wildcard(self._queries, server, record, answer):
                finding = await self._at_wildcard(response, record)
        elif finding.verdict is Verdict.MISSING and not (answer.alias or self._expect_absent):
            finding = await find_at_doubled_name(self._queries, server, record, answer.zone or zone)
        elif finding.verdict in ACCEPTED and answer.bogus:
            finding = Finding(Verdict.BOGUS, answer.bogus)
        return ServerFinding(server.label, finding)

    async def _at_wildcard(self, response: ServerResponse, record: DnsRecord) -> Finding:
        """Missing; but an alias, which was not yet followed, may lead to the record."""
        if self._expect_absent:
            for target in (await self._aliases.follow([response], record)).values():
                if target.finding.verdict in (*ACCEPTED, Verdict.NO_ANSWER):
                    return target.finding
        return Finding(Verdict.MISSING, "a wildcard answers there")


def _record(registration: Registration) -> DnsRecord:
    return registration.record or DnsRecord("", "", "")


def _alias(responses: Iterable[ServerResponse]) -> str:
    """The target of the first alias, or ""."""
    aliases = (response.answer.alias for response in responses if response.answer is not None)
    return next(filter(None, aliases), "")


def _check(
    registration: Registration,
    finding: Finding,
    servers: Iterable[ServerFinding] = (),
    alias: str = "",
) -> Check:
    return Check(
        registration.sign_domain, registration.selector or "", _record(registration).fqdn,
        registration.start_date, registration.enable, finding, tuple(servers), alias,
        regist_date=registration.regist_date,
    )  # fmt: skip
