"""What a server has at names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dkimctl.dns.messages import USEFUL, Answer, make_txt_question
from dkimctl.dns.shortcuts import only_record
from dkimctl.publishing.changes import NameState
from dkimctl.publishing.dns_server.pipeline import Response
from dkimctl.publishing.dns_server.server import Server
from dkimctl.publishing.dns_server.updates import txt_wire

_HEADER = 12  # bytes


def read_states(server: Server, zone: str, names: Sequence[str]) -> dict[str, NameState]:
    """What each name of the zone has, not what a wildcard has for it. Raises DkimctlError.

    An update does not see a wildcard either (RFC 2136 section 2.4.1), and what it adds hides it.
    """
    states = read_visible(server, zone, names)
    wildcards = {name: f"*.{name.partition('.')[2]}" for name in names if _content(states[name])}
    of_wildcards = read_visible(server, zone, wildcards.values())
    for name, wildcard in wildcards.items():
        if _content(states[name]) == _content(of_wildcards[wildcard]):
            states[name] = NameState()
    return states


def _content(state: NameState) -> tuple[str, ...]:
    """The records, in any order."""
    return (state.alias,) if state.alias else tuple(sorted(state.values))


def read_visible(server: Server, zone: str, names: Iterable[str]) -> dict[str, NameState]:
    """What each name of the zone seems to have: also what a wildcard has. Raises DkimctlError."""
    questions = {name: make_txt_question(name) for name in names}
    states = {
        response.question: _state(server, zone, response)
        for response in server.ask(questions.values())
    }
    return {name: states[question] for name, question in questions.items()}


def _state(server: Server, zone: str, response: Response) -> NameState:
    answer = response.answer
    if answer.rcode not in USEFUL:
        raise server.errors.of_query(answer.rcode, str(response.question))
    if answer.delegated:
        return NameState(delegated=answer.delegated)
    if not answer.is_authoritative:
        raise server.errors.not_authoritative(zone)
    if answer.alias:
        return NameState(alias=answer.alias, redirected=_redirected(answer))
    if not answer.values:
        # A zone below it, on the same server.
        is_own = answer.zone in ("", zone)
        return NameState() if is_own else NameState(delegated=answer.zone)
    ttl, wire = _records(response)
    values = tuple(value.decode("utf-8", "surrogateescape") for value in answer.values)
    usual = tuple(map(txt_wire, values))
    return NameState(values, ttl, wire=() if wire == usual else wire)


def _redirected(answer: Answer) -> str:
    """The owner of a DNAME, from which the server has made the alias (RFC 6672), or ""."""
    if answer.message is None:
        return ""
    from dns.rdatatype import DNAME

    owners = (one.name for one in answer.message.answer if one.rdtype == DNAME)
    return next((owner.to_text(omit_final_dot=True) for owner in owners), "")


def _records(response: Response) -> tuple[int, tuple[bytes, ...]]:
    """The TTL and the data of the TXT records."""
    question, answer, wire = response
    if answer.message is None:
        ttl, data = only_record(wire, _HEADER + len(question.section))
        return ttl, (data,)
    from dns.rdataclass import IN
    from dns.rdatatype import TXT

    rrset = answer.message.find_rrset(answer.message.answer, question.name, IN, TXT)
    return rrset.ttl, tuple(data.to_wire() for data in rrset)
