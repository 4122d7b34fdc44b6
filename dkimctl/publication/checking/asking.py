"""Ask the servers of one registration's zone, and judge what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dkimctl.dkim import MAX_NAME
from dkimctl.models.registration import DnsRecord, Registration
from dkimctl.publication.checking.hearing import QueryRunner, ServerResponse, gather
from dkimctl.publication.checking.sources import NameServer, Source
from dkimctl.publication.verdicts import (
    Check,
    Finding,
    ServerFinding,
    Verdict,
    combined,
    judge_values,
)
from dkimctl.resolver.messages import TXT, Answer, Question, question, txt_question
from dkimctl.resolver.server import NoAnswer
from dkimctl.text.escaping import printable

_BURSTS = 128  # servers that are asked in one go, at the same time
_LONGEST_CHAIN = 8  # aliases of aliases

# Where the aliases lead that servers tell of; given servers each have their own view of that.
_Ends = Mapping[tuple[str, NameServer | None], Finding]


class QueryPlan(NamedTuple):
    """What to ask, in which zone ("" where it is not known), and whom; or why nobody."""

    asked: Question
    zone: str
    servers: Sequence[NameServer]
    silence: NoAnswer | None = None


class RegistrationCheck:
    """Asks the servers that `source` finds. `expect_absent`: the records are to be gone."""

    def __init__(self, source: Source, *, expect_absent: bool) -> None:
        self._source = source
        self._hearing = QueryRunner(source)
        self._expect_absent = expect_absent
        self._wanted = Verdict.MISSING if expect_absent else Verdict.PUBLISHED

    async def find(self, registrations: Sequence[Registration]) -> list[QueryPlan]:
        """Where each is to be asked for; all of their servers are asked in one go beforehand."""
        work = [self._place(found) for found in registrations]
        # Without look-ups there is nothing to wait for, and tasks would only take their time.
        places = [await one for one in work] if self._source.is_given else await gather(work)
        questions: dict[NameServer, list[Question]] = {}
        for place in places:
            for server in place.servers:
                questions.setdefault(server, []).append(place.asked)
        slots = asyncio.Semaphore(_BURSTS)

        async def prepare(server: NameServer) -> None:
            async with slots:
                await server.prepare(questions[server])

        await asyncio.gather(*map(prepare, questions))
        return places

    async def check(self, found: Registration, place: QueryPlan) -> Check:
        """What DNS says of a registration whose record is sound (dkim.judge)."""
        record = _record(found)
        said: list[ServerResponse] = []
        findings: list[ServerFinding] = []
        try:
            if place.silence is not None:
                raise place.silence
            said = await self._hearing.hear_zone(place.zone, place.servers, place.asked)
            ends = await self._ends(said, record)
            findings = await gather(self._judge(one, record, place.zone, ends) for one in said)
            together = combined(findings, self._wanted) if findings else _nowhere(found)
        except NoAnswer as error:
            together = Finding(Verdict.NO_ANSWER, str(error))
        answers = [one.answer for one in said if one.answer is not None]
        return Check(
            found.sign_domain, found.selector or "", record.fqdn, found.start_date, found.enable,
            together, tuple(findings), next((one.alias for one in answers if one.alias), ""),
            is_first_hand=all(one.is_authoritative for one in answers),
        )  # fmt: skip

    async def _place(self, found: Registration) -> QueryPlan:
        asked = txt_question(_record(found).fqdn)
        try:
            return QueryPlan(asked, *await self._source.zone_of(found.sign_domain))
        except NoAnswer as error:
            return QueryPlan(asked, "", (), error)

    async def _judge(
        self, said: ServerResponse, record: DnsRecord, zone: str, ends: _Ends
    ) -> ServerFinding:
        if said.answer is None:
            return ServerFinding(said.server.label, _silence(said))
        if self._leads_on(said.answer):
            finding = ends[said.answer.alias, self._view(said.server)]
        else:
            finding = judge_values(record.value, _texts(said.answer))
            if finding.verdict is Verdict.MISSING and not self._expect_absent:
                finding = await self._at_doubled_name(said.server, record, said.answer.zone or zone)
        return ServerFinding(said.server.label, finding)

    def _leads_on(self, answer: Answer) -> bool:
        """Whether its alias is to be followed.

        A server speaks for the name that it was asked for, and hardly for where that leads
        (RFC 2181 section 5.4.1); only those that people name are taken at their word.
        """
        return bool(answer.alias) and not (self._source.is_given and answer.values)

    def _view(self, server: NameServer) -> NameServer | None:
        return server if self._source.is_given else None

    async def _ends(self, said: Sequence[ServerResponse], record: DnsRecord) -> _Ends:
        """What stands where the aliases lead. Each is followed once, however many tell of it."""
        leads = {
            (one.answer.alias, self._view(one.server)): one.server
            for one in said
            if one.answer is not None and self._leads_on(one.answer)
        }
        if not leads:
            return {}
        work = (self._follow(alias, server, record) for (alias, _), server in leads.items())
        return dict(zip(leads, await gather(work), strict=True))

    async def _follow(self, alias: str, server: NameServer, record: DnsRecord) -> Finding:
        if self._expect_absent:
            return Finding(Verdict.MISMATCH, "an alias stands there")
        seen, silent = {record.fqdn.lower()}, list[ServerFinding]()
        while alias not in seen and len(seen) <= _LONGEST_CHAIN:
            seen.add(alias)
            try:
                servers = await self._source.of_alias(alias, server)
            except NoAnswer as error:
                return Finding(Verdict.NO_ANSWER, str(error))
            said = await self._hearing.hear(servers, question(alias, TXT))
            answers = [one.answer for one in said if one.answer is not None]
            leads = {one.alias for one in answers if self._leads_on(one)}
            if not leads:
                return combined([*silent, *_judged(said, record)]) if said else _nothing_at(alias)
            if len(leads) > 1 or not all(map(self._leads_on, answers)):
                reason = f"the servers of {printable(alias)} disagree on whether it is an alias"
                return Finding(Verdict.INCONSISTENT, reason)
            silent += [
                ServerFinding(one.server.label, _silence(one)) for one in said if not one.answer
            ]
            (alias,) = leads
        reason = f"its aliases lead in a circle, or on and on, to {printable(alias)}"
        return Finding(Verdict.NO_ANSWER, reason)

    async def _at_doubled_name(self, server: NameServer, record: DnsRecord, zone: str) -> Finding:
        """Whether a missing record stands below the zone's own name, for want of a final dot."""
        doubled = f"{record.fqdn}.{zone}"
        if zone and len(doubled) <= MAX_NAME:
            (said,) = await self._hearing.hear([server], question(doubled, TXT))
            if said.answer is not None and record.value in _texts(said.answer):
                reason = f"it stands at {doubled}: for want of a final dot the zone is there twice"
                return Finding(Verdict.MALFORMED, reason)
        return Finding(Verdict.MISSING)


def _judged(said: Sequence[ServerResponse], record: DnsRecord) -> list[ServerFinding]:
    return [
        ServerFinding(
            one.server.label,
            judge_values(record.value, _texts(one.answer)) if one.answer else _silence(one),
        )
        for one in said
    ]


def _silence(said: ServerResponse) -> Finding:
    return Finding(Verdict.NO_ANSWER, str(said.silence))


def _record(found: Registration) -> DnsRecord:
    return found.record or DnsRecord("", "", "")


def _nowhere(found: Registration) -> Finding:
    return Finding(Verdict.MISSING, f"DNS has no zone for {found.sign_domain}")


def _nothing_at(alias: str) -> Finding:
    return Finding(Verdict.MISSING, f"DNS has no zone for {printable(alias)}")


def _texts(answer: Answer) -> list[str]:
    return [value.decode("utf-8", "surrogateescape") for value in answer.values]
