"""Ask the servers of one registration's zone, and judge what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from dkimctl.checking.sources import Asked, Source
from dkimctl.models import DnsRecord, Registration
from dkimctl.publication import Check, Finding, ServerFinding, Verdict, combined, judge_values
from dkimctl.resolver import (
    NOERROR,
    NXDOMAIN,
    TXT,
    Answer,
    NoAnswer,
    NoRoute,
    Question,
    question,
    rcode_name,
    txt_question,
)
from dkimctl.text import printable

_DEEPEST = 4  # delegations below the zone of the signing domain
_LONGEST_CHAIN = 8  # aliases
_MAX_NAME = 253
_BURSTS = 128  # servers that are asked in one go, at the same time
_USEFUL = frozenset((NOERROR, NXDOMAIN))

_T = TypeVar("_T")


class _Said(NamedTuple):
    """What came of asking one server: an answer, or else why there is none."""

    server: Asked
    answer: Answer | None
    silence: NoAnswer | None = None


class Place(NamedTuple):
    """What to ask, in which zone ("" where it is not known), and whom; or why nobody."""

    asked: Question
    zone: str
    servers: Sequence[Asked]
    silence: NoAnswer | None = None


class Inquiry:
    """Asks the servers that `source` finds. `expect_absent`: the records are to be gone."""

    def __init__(self, source: Source, *, expect_absent: bool) -> None:
        self._source = source
        self._expect_absent = expect_absent

    async def find(self, registrations: Sequence[Registration]) -> list[Place]:
        """Where each is to be asked for; all of their servers are asked in one go beforehand."""
        work = [self._place(found) for found in registrations]
        # Without look-ups there is nothing to wait for, and tasks would only take their time.
        places = [await one for one in work] if self._source.is_given else await _gather(work)
        questions: dict[Asked, list[Question]] = {}
        for place in places:
            for server in place.servers:
                questions.setdefault(server, []).append(place.asked)
        slots = asyncio.Semaphore(_BURSTS)

        async def prepare(server: Asked) -> None:
            async with slots:
                await server.prepare(questions[server])

        await asyncio.gather(*map(prepare, questions))
        return places

    async def check(self, found: Registration, place: Place) -> Check:
        """What DNS says of a registration whose record is sound (dkim.judge)."""
        findings, alias = [], ""
        try:
            if place.silence is not None:
                raise place.silence
            said = await self._ask_zone(place.asked, place.zone, place.servers)
            findings = await _gather(
                self._judge(one, _record(found), place.zone) for one in _reached(said)
            )
            aliases = [one.answer.alias for one in said if one.answer is not None]
            alias = next(filter(None, aliases), "")
            together = combined(findings) if findings else _nowhere(found)
        except NoAnswer as error:
            together = Finding(Verdict.NO_ANSWER, str(error))
        return Check(
            found.sign_domain, found.selector or "", _record(found).fqdn, found.start_date,
            found.enable, together, tuple(findings), alias,
        )  # fmt: skip

    async def _place(self, found: Registration) -> Place:
        asked = txt_question(_record(found).fqdn)
        try:
            return Place(asked, *await self._source.zone_of(found.sign_domain))
        except NoAnswer as error:
            return Place(asked, "", (), error)

    async def _ask_zone(self, asked: Question, zone: str, servers: Sequence[Asked]) -> list[_Said]:
        """What each server says, or each of a zone below that they refer to."""
        said = await _gather(self._ask(server, asked) for server in servers)
        for _ in range(_DEEPEST):
            below = (one.answer.delegated for one in said if one.answer is not None)
            zone = next((name for name in below if zone and name.endswith(f".{zone}")), "")
            if not zone:
                break
            deeper = await self._source.of_zone(zone)
            said = await _gather(self._ask(server, asked) for server in deeper)
        return [self._relied_on(one) for one in said]

    async def _ask(self, server: Asked, asked: Question) -> _Said:
        try:
            answer = await server.ask(asked)
        except NoAnswer as error:
            return _Said(server, None, error)
        if answer.rcode not in _USEFUL:
            return _Said(server, None, NoAnswer(f"it answers {rcode_name(answer)}"))
        return _Said(server, answer)

    def _relied_on(self, said: _Said) -> _Said:
        """The same, unless the server knows the zone at second hand only."""
        answer = said.answer
        if answer is None or answer.is_authoritative:
            return said
        if self._source.is_given and answer.is_recursive:
            return said
        return _Said(said.server, None, NoAnswer("it does not speak for the zone (lame)"))

    async def _judge(self, said: _Said, record: DnsRecord, zone: str) -> ServerFinding:
        finding = await self._finding(said, record.value, _LONGEST_CHAIN)
        is_missing = finding.verdict is Verdict.MISSING and not self._expect_absent
        if is_missing and said.answer is not None and not said.answer.alias:
            finding = await self._at_doubled_name(said.server, record, said.answer.zone or zone)
        return ServerFinding(said.server.label, finding)

    async def _finding(self, said: _Said, expected: str, aliases: int) -> Finding:
        if said.answer is None:
            return Finding(Verdict.NO_ANSWER, str(said.silence))
        if said.answer.alias and not said.answer.values:
            return await self._follow(said.answer.alias, said.server, expected, aliases)
        return judge_values(expected, _texts(said.answer))

    async def _follow(self, alias: str, server: Asked, expected: str, aliases: int) -> Finding:
        """What stands where an alias leads."""
        if not aliases:
            reason = f"its aliases lead on and on, to {printable(alias)}"
            return Finding(Verdict.NO_ANSWER, reason)
        try:
            servers = await self._source.of_alias(alias, server)
        except NoAnswer as error:
            return Finding(Verdict.NO_ANSWER, str(error))
        asked = question(alias, TXT)  # a name of any characters
        said = await _gather(self._ask(server, asked) for server in servers)
        findings = [
            ServerFinding(
                one.server.label, await self._finding(self._relied_on(one), expected, aliases - 1)
            )
            for one in said
        ]
        return combined(findings) if findings else Finding(Verdict.MISSING)

    async def _at_doubled_name(self, server: Asked, record: DnsRecord, zone: str) -> Finding:
        """Whether a missing record stands below the zone's own name, for want of a final dot."""
        doubled = f"{record.fqdn}.{zone}"
        if zone and len(doubled) <= _MAX_NAME:
            asked = question(doubled, TXT)
            answer = (await self._ask(server, asked)).answer
            if answer is not None and record.value in _texts(answer):
                reason = f"it stands at {doubled}: for want of a final dot the zone is there twice"
                return Finding(Verdict.MALFORMED, reason)
        return Finding(Verdict.MISSING)


def _reached(said: Sequence[_Said]) -> Sequence[_Said]:
    """Without addresses that this machine has no way to, where another of that host answers."""
    answering = {one.server.host for one in said if one.answer is not None}
    return [
        one
        for one in said
        if not isinstance(one.silence, NoRoute) or one.server.host not in answering
    ]


def _record(found: Registration) -> DnsRecord:
    return found.record or DnsRecord("", "", "")


def _nowhere(found: Registration) -> Finding:
    return Finding(Verdict.MISSING, f"DNS has no zone for {found.sign_domain}")


def _texts(answer: Answer) -> list[str]:
    return [value.decode("utf-8", "surrogateescape") for value in answer.values]


async def _gather(work: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """All the results. One alone needs no task of its own, which would take its time."""
    found = list(work)
    return [await found[0]] if len(found) == 1 else await asyncio.gather(*found)
