"""Follow the aliases (CNAME records) that servers have at the name of a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dkimctl.dns.authorities import Zone
from dkimctl.dns.findings import direct_finding, located, no_zone
from dkimctl.dns.messages import MAX_ALIASES, TXT, Answer, make_question, name_above
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.probes import zone_served
from dkimctl.dns.queries import (
    NotServed,
    QueryRunner,
    ServerResponse,
    Source,
    gather,
)
from dkimctl.dns.verdicts import Finding, ServerFinding, Verdict, combine_findings
from dkimctl.models.registration import DnsRecord
from dkimctl.text.escaping import printable


class AliasTarget(NamedTuple):
    """What is at the end of a chain of aliases, and the zones on the way."""

    finding: Finding
    zones: Sequence[Zone] = ()


class AliasFollower:
    """Asks the servers that `source` finds for the targets of aliases."""

    def __init__(self, source: Source, queries: QueryRunner) -> None:
        self._source = source
        self._queries = queries

    async def follow(
        self, responses: Sequence[ServerResponse], record: DnsRecord
    ) -> dict[NameServer, AliasTarget]:
        """The target of each server that has an alias. Servers with the same alias share it."""
        aliases = {
            server: self._key(server, answer)
            for server, answer, _ in responses
            if answer is not None and self.is_followed(answer)
        }
        if not aliases:
            return {}
        servers = {key: server for server, key in aliases.items()}
        found = await gather(
            self._follow(target, server, record) for (target, _), server in servers.items()
        )
        targets = dict(zip(servers, found, strict=True))
        return {server: targets[key] for server, key in aliases.items()}

    def _key(self, server: NameServer, answer: Answer) -> tuple[str, NameServer | None]:
        """The target; and the server, if only that one is asked about it."""
        return answer.alias, server if self._source.is_given else None

    def is_followed(self, answer: Answer) -> bool:
        """Whether to ask for the target of its alias.

        A server is authoritative for the name it was asked for, and rarely for the target of an
        alias (RFC 2181 section 5.4.1); only given servers are believed.
        """
        return bool(answer.alias) and not (self._source.is_given and answer.values)

    async def _follow(self, target: str, server: NameServer, record: DnsRecord) -> AliasTarget:
        names = [record.fqdn.lower()]
        zones: list[Zone] = []
        failed: list[ServerFinding] = []
        while target not in names and len(names) <= MAX_ALIASES:
            names.append(target)
            try:
                zone, responses = await self._ask(target, server)
            except NoAnswer as error:
                return AliasTarget(Finding(Verdict.NO_ANSWER, str(error)), zones)
            zones.append(zone)
            if self._source.is_given and isinstance(responses[0].failure, NotServed):
                return AliasTarget(await self._outside(target, server, record))
            question = make_question(target, TXT)
            findings = [direct_finding(response, record) for response in responses]
            next_targets = self._next_targets(responses)
            if not any(next_targets):
                finding = _at_end(target, zone, [*failed, *findings])
                return AliasTarget(finding, zones)
            if len(next_targets) > 1:
                reason = f"the servers of {printable(target)} give different aliases, or none"
                return AliasTarget(Finding(Verdict.INCONSISTENT, reason), zones)
            (target,) = next_targets
            failed += [
                one._replace(finding=located(one.finding, zone, question))
                for one in findings
                if one.finding.verdict is Verdict.NO_ANSWER
            ]
        return AliasTarget(_endless(names, target), zones)

    async def _ask(self, target: str, server: NameServer) -> tuple[Zone, list[ServerResponse]]:
        """The zone of a target, and what its servers answer. Raises NoAnswer."""
        try:
            zone = await self._source.zone_of_alias(target, server)
        except NoAnswer:
            # Resolvers fail at a loop. But an alias is not the apex of a zone.
            zone = await self._source.zone_of_alias(name_above(target), server)
            if not zone.servers:
                raise
        return await self._queries.ask_zone(zone, make_question(target, TXT))

    async def _outside(self, target: str, server: NameServer, record: DnsRecord) -> Finding:
        zone = await zone_served(self._queries, server, record)
        where = f"{zone}, the zone that this server has" if zone else "the zones of this server"
        reason = f"its alias leads to {printable(target)}, outside of {where}"
        return Finding(Verdict.NO_ANSWER, reason)

    def _next_targets(self, responses: Iterable[ServerResponse]) -> set[str]:
        """The targets that servers have, "" for a server without an alias."""
        answers = [response.answer for response in responses if response.answer is not None]
        return {answer.alias if self.is_followed(answer) else "" for answer in answers}


def _at_end(target: str, zone: Zone, findings: Sequence[ServerFinding]) -> Finding:
    if not findings:
        return no_zone(printable(target))
    return located(combine_findings(findings), zone, make_question(target, TXT))


def _endless(names: Sequence[str], target: str) -> Finding:
    """Of a chain that resolvers do not follow to its end."""
    if target in names:
        reason = f"its aliases (CNAME) are a loop, at {printable(target)}"
    else:
        reason = f"more than {MAX_ALIASES} aliases (CNAME) in a row, up to {printable(names[-1])}"
    return Finding(Verdict.MALFORMED, reason)
