"""Whether the owners of domains have handed over the names of keys, as a pool asks for it.

By an alias (CNAME) for each selector, or by delegating `_domainkey.DOMAIN` to name servers.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dns import messages, queries
from dkimctl.dns.check import QueryPlan, plan_questions
from dkimctl.dns.messages import NS, Question, make_question, make_txt_question, to_text
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.queries import ServerResponse, Source
from dkimctl.settings.delegation import Pool
from dkimctl.text import listed

_CONCURRENCY = 64  # names asked for at a time, of those that no burst has answered
_CHUNK = 2048  # names whose states are kept until all of them are known


class DelegationState(StrEnum):
    """What DNS has of a delegation; one server that lacks it is enough for the worse state."""

    RIGHT = "right"
    UNKNOWN = "unknown"  # no answer
    MISSING = "missing"
    ELSEWHERE = "elsewhere"  # it leads to another name, or is a record of its own


class Delegation(NamedTuple):
    """A record that hands over the names of keys to a pool, and what DNS has of it."""

    sign_domain: str
    selectors: tuple[str, ...]  # that it hands over: one by CNAME, all by NS
    fqdn: str
    rdtype: str  # CNAME or NS
    targets: tuple[str, ...]  # where it should lead, without trailing dots
    state: DelegationState = DelegationState.UNKNOWN
    found: tuple[str, ...] = ()  # where it leads instead
    reason: str = ""


def delegations(
    pool: Pool, sign_domain: str, selectors: Container[str] | None = None
) -> list[Delegation]:
    """What the pool needs in the domain's DNS, for these selectors (None: for all)."""
    names = tuple(name for name in pool.names() if selectors is None or name in selectors)
    keys = f"_domainkey.{sign_domain}"
    if pool.ns:
        return [Delegation(sign_domain, names, keys, "NS", pool.ns)] if names else []
    return [
        Delegation(
            sign_domain, (name,), f"{name}.{keys}", "CNAME", (pool.target_of(sign_domain, name),)
        )
        for name in names
    ]


def check_delegations(
    wanted: Iterable[Delegation],
    source: Source,
    checked: Callable[[Delegation], None] = lambda _: None,
) -> Iterator[Delegation]:
    """What the servers of each domain's zone have, in order; `checked` gets each when it is known.

    Not for use within an event loop.
    """
    remaining = iter(wanted)
    with asyncio.Runner() as runner:
        while chunk := list(itertools.islice(remaining, _CHUNK)):
            yield from runner.run(_check_all(chunk, source, checked))


async def _check_all(
    chunk: Sequence[Delegation], source: Source, checked: Callable[[Delegation], None]
) -> list[Delegation]:
    questions = (
        make_question(each.fqdn, NS) if each.rdtype == "NS" else make_txt_question(each.fqdn)
        for each in chunk
    )
    domains = (each.sign_domain for each in chunk)
    plans = await plan_questions(source, list(zip(domains, questions, strict=True)))
    done: dict[int, Delegation] = {}
    remaining = enumerate(zip(chunk, plans, strict=True))

    async def work() -> None:
        for number, (wanted, plan) in remaining:
            done[number] = await _check(wanted, plan, source)
            checked(done[number])

    await asyncio.gather(*(work() for _ in range(min(_CONCURRENCY, len(chunk)))))
    return [done[number] for number in range(len(chunk))]


async def _check(wanted: Delegation, plan: QueryPlan, source: Source) -> Delegation:
    question, zone = plan
    try:
        if isinstance(zone, NoAnswer):
            raise zone
        if wanted.rdtype == "NS":
            asked = queries.questions_of(zone, question)[0]  # as it was in the burst
            asking = (_servers_at(source, each, asked, wanted) for each in zone.servers)
            found = await queries.gather(asking)
        else:  # as resolvers ask, for the key
            zone, responses = await queries.ask_zone(source, zone, question)
            found = [_alias_at(response, wanted) for response in responses]
    except NoAnswer as error:
        return wanted._replace(reason=str(error))
    if not found:
        reason = queries.no_zone(wanted.sign_domain).reason
        return wanted._replace(state=DelegationState.MISSING, reason=reason)
    worst = max((each.state for each in found), key=[*DelegationState].index)
    which = [each for each in found if each.state is worst]
    reason = "; ".join(sorted({each.why for each in which if each.why}))
    if len(which) < len(found) or worst is DelegationState.UNKNOWN:
        at = f"{worst} at {listed([each.server for each in which])}"
        reason = f"{at}: {reason}" if reason else at
    if worst is DelegationState.RIGHT and (zone.bogus or zone.unknown_delegation):
        worst = DelegationState.MISSING if zone.bogus else DelegationState.UNKNOWN
        reason = zone.bogus or zone.unknown_delegation
    leads_to = {target for each in which for target in each.targets}
    return wanted._replace(state=worst, found=tuple(sorted(leads_to)), reason=reason)


class _Seen(NamedTuple):
    """What one server has."""

    server: str
    state: DelegationState
    why: str = ""
    targets: Iterable[str] = ()  # where it leads instead


def _alias_at(response: ServerResponse, wanted: Delegation) -> _Seen:
    server, answer = response.server.label, response.answer
    if answer is None:
        return _Seen(server, DelegationState.UNKNOWN, str(response.failure))
    if response.denial:  # so resolvers may take it that there is no such name
        return _Seen(server, DelegationState.MISSING, response.denial)
    if answer.alias in wanted.targets:
        return _Seen(server, DelegationState.RIGHT)
    if answer.alias:
        return _Seen(server, DelegationState.ELSEWHERE, targets=[answer.alias])
    if answer.values:
        why = "it has a TXT record: delete it, since nothing else may be beside a CNAME"
        return _Seen(server, DelegationState.ELSEWHERE, why)
    return _Seen(server, DelegationState.MISSING)


async def _servers_at(
    source: Source, server: NameServer, question: Question, wanted: Delegation
) -> _Seen:
    """The name servers in its referral, or in the zone itself if it has that as well."""
    label, responder, unknown = server.label, server.responder, DelegationState.UNKNOWN
    try:
        if isinstance(responder, NoAnswer):
            raise responder
        answer = await responder.ask(question)
    except NoAnswer as error:
        return _Seen(label, unknown, str(error))
    if answer.rcode not in messages.USEFUL:
        return _Seen(label, unknown, f"it answers {messages.rcode_text(answer.rcode)}")
    is_second_hand = not (source.is_given and answer.is_recursive) and not answer.is_authoritative
    if is_second_hand and answer.delegated != wanted.fqdn.lower():
        return _Seen(label, unknown, "it is not authoritative for the zone (lame)")
    message, name = answer.message, question.name
    hosts = {
        to_text(data.target)
        for rrset in ((*message.answer, *message.authority) if message else ())
        if rrset.rdtype == NS and rrset.name == name
        for data in rrset
    }
    if answer.alias or hosts - {*wanted.targets}:
        others = [answer.alias] if answer.alias else hosts
        return _Seen(label, DelegationState.ELSEWHERE, targets=others)
    lacking = [host for host in wanted.targets if host not in hosts]
    state = DelegationState.MISSING if lacking else DelegationState.RIGHT
    return _Seen(label, state, f"it lacks {listed(lacking)}" if lacking and hosts else "")
