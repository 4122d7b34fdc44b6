"""Check registrations in DNS, many at the same time, in one round or several; or delegations."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from dkimctl.dns import queries, verdicts
from dkimctl.dns.messages import NS, Question, make_question, make_txt_question, to_text
from dkimctl.dns.nameserver import NameServer, NoAnswer, RecursiveResolver, Server
from dkimctl.dns.queries import AliasTarget, ServerResponse, Source
from dkimctl.dns.verdicts import Check, Finding, Looks, ServerFinding, Verdict
from dkimctl.dns.zones import Zone, once
from dkimctl.models import DnsRecord, Registration, RegistrationKey
from dkimctl.settings.rotation import Pool
from dkimctl.text import listed

_CONCURRENCY = 64  # registrations asked for one by one; each takes some sockets
_CHUNK = 2048  # registrations whose checks are kept until all of them are done
_MAX_BURSTS = 128  # servers that get their questions at the same time
# Of these, none comes from a wildcard, or it does not matter.
_NO_WILDCARD = verdicts.ACCEPTED | {Verdict.MISSING, Verdict.DENIED, Verdict.NO_ANSWER}
_FROM_WILDCARD = Finding(Verdict.MISSING, "a wildcard answers there")

# Seconds between rounds, and the ratio of one interval to the one before.
_FIRST_INTERVAL, _GROWTH, _MAX_INTERVAL = 2.0, 1.5, 60.0
_CONFIRM_AFTER = 5.0  # seconds after a good look that follows a bad one, which may be luck


class CheckPolicy(NamedTuple):
    """`wait` is in seconds: until then, records that are not as wanted are checked again."""

    wait: float
    warn_within: timedelta
    expect_absent: bool

    @property
    def wanted(self) -> Verdict:
        """The good verdict."""
        return Verdict.MISSING if self.expect_absent else Verdict.PUBLISHED


class Progress(Protocol):
    """Gets how far the checks are, in the caller's thread."""

    def checked(self, check: Check) -> None:
        """A check is done, in any order."""

    def pause(self, seconds: float, checks: Sequence[Check]) -> None:
        """Sleep until the next round; `checks` has the latest of each record."""


def check_publication(
    registrations: Iterable[Registration], source: Source, policy: CheckPolicy, *,
    progress: Progress, looks: Looks, retired: Mapping[RegistrationKey, str] = MappingProxyType({}),
) -> Iterator[Check]:  # fmt: skip
    """Check each registration (with a sound record); gives the checks in order.

    `progress` and `looks` get each check of each round when it is done. `retired` has the keys
    whose records may be gone, and why. Not for use within an event loop.
    """

    def finish(check: Check) -> Check:
        looks.add(check)
        is_missing = check.finding.verdict is Verdict.MISSING and not policy.expect_absent
        if is_missing and check.key in retired:
            check = check._replace(finding=Finding(Verdict.RETIRED, retired[check.key]))
        progress.checked(check)
        return check

    checker = Checker(source, policy.expect_absent, finish)
    checks: Iterable[Check] = (
        repeat_checks(checker, list(registrations), policy, progress)
        if policy.wait
        else checker.check(registrations)
    )
    now = datetime.now(UTC)
    for check in checks:
        # A record that should be gone, or may be, is never urgent.
        may_be_gone = policy.expect_absent or check.key in retired
        urgency = None if may_be_gone else verdicts.urgency_of(check, now, policy.warn_within)
        yield check._replace(urgency=urgency) if urgency else check


def repeat_checks(
    checker: Checker, registrations: Sequence[Registration], policy: CheckPolicy, progress: Progress
) -> list[Check]:
    """The last check of each registration, in order.

    Those that are not as wanted are checked again, with empty caches; after the wait of the policy
    no further round starts, but for one that confirms a good look: a server that answers only now
    and then, or one of several at an address, may have the record, and the next one not.
    """
    until = time.monotonic() + policy.wait
    checks = list(checker.check(registrations))
    interval = _FIRST_INTERVAL  # short at first, after a change was just published

    def bad(numbers: Iterable[int]) -> list[int]:
        found = ((number, checks[number].finding.verdict) for number in numbers)
        return [at for at, verdict in found if not verdicts.is_good(verdict, policy.wanted)]

    left, confirming = bad(range(len(checks))), list[int]()
    while confirming or left:
        remaining = until - time.monotonic()
        if not confirming and remaining <= 0:
            break
        progress.pause(_CONFIRM_AFTER if confirming else min(interval, remaining), checks)
        checker.source.forget()
        asked = confirming or left
        again = checker.check([registrations[number] for number in asked])
        for number, latest in zip(asked, again, strict=True):
            checks[number] = latest
        still_bad = bad(asked)
        if confirming:
            left, confirming = sorted([*left, *still_bad]), []
        else:
            left, confirming = still_bad, sorted({*asked} - {*still_bad})
            interval = min(interval * _GROWTH, _MAX_INTERVAL)
    return checks


# What to ask the servers of which zone; or why they are not known.
QueryPlan: TypeAlias = tuple[Question, Zone | NoAnswer]
# Where the aliases lead that servers have: by target, and by the server if only it is believed.
_Targets: TypeAlias = dict[tuple[str, NameServer | None], asyncio.Task[AliasTarget]]


@dataclass(eq=False)
class Checker:
    """Asks the servers that `source` finds; `finish` makes of each check the one to emit."""

    source: Source
    expect_absent: bool = False
    finish: Callable[[Check], Check] = lambda check: check

    def check(self, registrations: Iterable[Registration]) -> Iterator[Check]:
        """The checks, in the order of the registrations, each with a sound record."""
        remaining = iter(registrations)
        with asyncio.Runner() as runner:
            while chunk := list(itertools.islice(remaining, _CHUNK)):
                yield from runner.run(self._check_all(chunk))

    async def _check_all(self, registrations: Sequence[Registration]) -> list[Check]:
        checks: dict[int, Check] = {}
        secure: list[int] = []
        remaining = enumerate(zip(registrations, await self._plan_all(registrations), strict=True))

        async def work() -> None:
            for number, (registration, plan) in remaining:
                check, is_secure = await self._check(registration, plan)
                checks[number] = check if is_secure else self.finish(check)
                if is_secure:
                    secure.append(number)

        # Not a TaskGroup, whose ExceptionGroup would hide the error.
        await asyncio.gather(*(work() for _ in range(min(_CONCURRENCY, len(registrations)))))
        # The resolver is asked for no record before its servers have it, since it would remember
        # the absence.
        questions = [make_txt_question(checks[number].fqdn) for number in secure]
        for number, finding in zip(secure, await self.source.unresolved(questions), strict=True):
            check = checks[number]
            checks[number] = self.finish(check._replace(finding=finding or check.finding))
        return [checks[number] for number in range(len(registrations))]

    async def _plan_all(self, registrations: Sequence[Registration]) -> list[QueryPlan]:
        """What to ask for each; sends each server its questions in one burst beforehand."""

        async def plan_of(registration: Registration) -> QueryPlan:
            record = _record(registration)
            # An alias is found as resolvers find it: by the question for the key.
            question = make_txt_question(record.fqdn)
            if record.type == "NS":
                question = make_question(record.fqdn, NS)
            try:
                return question, await self.source.zone_with(registration.sign_domain)
            except NoAnswer as error:
                return question, error

        if self.source.is_given:  # no lookups, so tasks would only cost time
            plans = [await plan_of(registration) for registration in registrations]
        else:
            await self.source.prefetch({each.sign_domain for each in registrations})
            plans = await queries.gather(map(plan_of, registrations))
        self.source.answers_beside.clear()
        self.source.dropped.clear()
        # A dict has each question once: names of one domain have the same name above them.
        questions: dict[Server | RecursiveResolver, dict[Question, None]] = {}
        for question, zone in plans:
            if isinstance(zone, NoAnswer):
                continue
            every = dict.fromkeys(queries.questions_of(zone, question))
            for server in zone.servers:
                if not isinstance(server.responder, NoAnswer):
                    questions.setdefault(server.responder, {}).update(every)
        slots = asyncio.Semaphore(_MAX_BURSTS)

        async def prefetch(responder: Server | RecursiveResolver) -> None:
            async with slots:
                await responder.prefetch(list(questions[responder]))

        await asyncio.gather(*map(prefetch, questions))
        return plans

    async def _check(self, registration: Registration, plan: QueryPlan) -> tuple[Check, bool]:
        """What DNS has, and whether the resolver should be able to validate the record (DNSSEC)."""
        record = _record(registration)
        check = Check(
            registration.sign_domain, registration.selector or "", record.fqdn,
            registration.start_date, registration.enable, Finding(Verdict.NO_ANSWER),
            regist_date=registration.regist_date,
        )  # fmt: skip
        question, planned = plan
        try:
            if isinstance(planned, NoAnswer):
                raise planned
            zone, responses = await queries.ask_zone(self.source, planned, question)
        except NoAnswer as error:
            return check._replace(finding=Finding(Verdict.NO_ANSWER, str(error))), False
        targets: _Targets = {}
        judging = (self._finding(each, record, zone.name, targets) for each in responses)
        if all(each.answer and each.answer.values and not each.answer.alias for each in responses):
            findings = [await each for each in judging]  # asks nothing more, as a rule
        else:
            findings = await queries.gather(judging)
        finding = queries.no_zone(registration.sign_domain)
        if findings:
            wanted = Verdict.MISSING if self.expect_absent else Verdict.PUBLISHED
            finding = queries.located(verdicts.combine_findings(findings, wanted), zone, question)
            if finding.verdict is Verdict.INCONSISTENT:
                asked = zone, question, responses
                why = await queries.why_apart(self.source, *asked, findings, wanted)
                finding = _with_reason(finding, why)
        # What follows for resolvers, which see more than the servers of these zones.
        zones = [zone, *(zone for target in targets.values() for zone in target.result().zones)]
        is_accepted = finding.verdict in verdicts.ACCEPTED and not self.expect_absent
        unknown, bogus = "", next((zone.bogus for zone in zones if zone.bogus), "")
        if finding.verdict is not Verdict.NO_ANSWER:
            unknown = next(filter(None, (zone.unknown_delegation for zone in zones)), "")
        if is_accepted and bogus:
            finding = Finding(Verdict.BOGUS, bogus)
        else:
            finding = _with_reason(finding, unknown)
        aliases = (response.answer.alias for response in responses if response.answer is not None)
        ends = {target.result().name for target in targets.values()}
        if any(each.finding == _FROM_WILDCARD for each in findings):
            ends.clear()  # not an alias of its own
        check = check._replace(
            finding=finding, servers=tuple(findings), alias=next(filter(None, aliases), ""),
            alias_end=ends.pop() if len(ends) == 1 else "", is_delegation_known=not unknown,
            zone=zone.name,
        )  # fmt: skip
        return check, is_accepted and not bogus and any(zone.is_secure for zone in zones)

    async def _finding(
        self, response: ServerResponse, record: DnsRecord, zone: str, targets: _Targets
    ) -> ServerFinding:
        """`targets` gets what its alias leads to."""
        server, answer = response.server, response.answer
        if self.expect_absent:
            response = response._replace(denial="")  # it is there
        finding = queries.direct_finding(response, record)
        if answer is None:
            return ServerFinding(server.label, finding)

        async def follow(alias: tuple[str, NameServer | None]) -> AliasTarget:
            return await queries.follow_alias(self.source, alias[0], server, record)

        # Each alias is followed once; from given servers, once for each.
        alias = answer.alias, server if self.source.is_given else None
        is_followed = queries.is_followed(self.source, answer)
        if is_followed:
            finding = queries.denied((await once(targets, alias, follow)).finding, response)
        if finding.verdict not in _NO_WILDCARD or (
            is_followed and finding.verdict is Verdict.MISSING
        ):
            if await queries.is_from_wildcard(self.source, server, record, answer):
                finding = _FROM_WILDCARD
        elif finding.verdict is Verdict.MISSING and not (answer.alias or self.expect_absent):
            finding = await queries.find_at_doubled_name(
                self.source, server, record, answer.zone or zone
            )
        elif finding.verdict in verdicts.ACCEPTED and answer.bogus:
            finding = Finding(Verdict.BOGUS, answer.bogus)
        return ServerFinding(server.label, finding)


def delegations(
    pool: Pool, sign_domain: str, selectors: Iterable[str] | None = None
) -> list[Registration]:
    """What the pool needs in the domain's DNS, for these selectors (None: for all).

    Each stands for a key that there need not be, and has a CNAME record; or one, without selector,
    has the names of all NS records, separated by spaces.
    """
    keys = f"_domainkey.{sign_domain}"
    if pool.ns:
        return [Registration(sign_domain, record=DnsRecord(keys, "NS", " ".join(pool.ns)))]
    records = (
        (name, DnsRecord(f"{name}.{keys}", "CNAME", pool.target_of(sign_domain, name)))
        for name in (pool.names() if selectors is None else selectors)
    )
    return [Registration(sign_domain, name, record=record) for name, record in records]


class DelegationChecker(Checker):
    """Checks whether servers delegate to just the names in the records of `delegations`.

    By an alias (CNAME) for each selector, or by delegating `_domainkey.DOMAIN` to name servers.
    """

    async def _check(self, registration: Registration, plan: QueryPlan) -> tuple[Check, bool]:
        check, _ = await super()._check(registration, plan)
        if not check.is_delegation_known and check.finding.verdict is Verdict.PUBLISHED:
            check = check._replace(finding=check.finding._replace(verdict=Verdict.NO_ANSWER))
        return check, False  # a resolver would remember that there is no key yet

    async def _finding(
        self, response: ServerResponse, record: DnsRecord, zone: str, *_: object
    ) -> ServerFinding:
        answer, wanted = response.answer, record.value.split()
        if answer is None:
            return ServerFinding(response.server.label, queries.direct_finding(response, record))
        targets = {answer.alias} if answer.alias else set[str]()
        if record.type == "NS" and answer.message and not targets:
            rrsets = *answer.message.answer, *answer.message.authority
            targets = {to_text(each.target) for rrset in rrsets if rrset.rdtype == NS
                     and to_text(rrset.name) == record.fqdn.lower() for each in rrset}  # fmt: skip
        lacking = [name for name in wanted if name not in targets]
        if targets - {*wanted}:
            reason = f"it leads to {listed(sorted(targets))}, not to {listed(wanted)}"
            if targets == {f"{name}.{zone}" for name in wanted}:
                reason += ": end the target with a dot"
            finding = Finding(Verdict.MISMATCH, reason)
        elif not lacking:
            finding = queries.denied(Finding(Verdict.PUBLISHED), response)
        elif answer.values:
            reason = "it has a TXT record: delete it, since nothing else may be beside a CNAME"
            finding = Finding(Verdict.MISMATCH, reason)
        else:
            finding = Finding(Verdict.MISSING, f"it lacks {listed(lacking)}" if targets else "")
        return ServerFinding(response.server.label, finding)


def _record(registration: Registration) -> DnsRecord:
    return registration.record or DnsRecord("", "", "")


def _with_reason(finding: Finding, more: str) -> Finding:
    return finding._replace(reason="; ".join(filter(None, (finding.reason, more))))
