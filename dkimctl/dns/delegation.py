"""Whether the owners of domains have delegated the selectors of a pool.

By an alias (CNAME) for each selector, or by delegating `_domainkey.DOMAIN` to name servers.
"""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.dns import queries
from dkimctl.dns.check import Checker, QueryPlan
from dkimctl.dns.messages import NS, Question, make_question, to_text
from dkimctl.dns.queries import ServerResponse
from dkimctl.dns.verdicts import Check, Finding, ServerFinding, Verdict
from dkimctl.dns.zones import Zone
from dkimctl.models import DnsRecord, Registration
from dkimctl.settings.delegation import Pool
from dkimctl.text import listed


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
    """Checks whether servers delegate to just the names in the records of `delegations`."""

    def _question(self, record: DnsRecord) -> Question:
        # An alias is found as resolvers find it: by the question for the key.
        return make_question(record.fqdn, NS) if record.type == "NS" else super()._question(record)

    async def _check(self, registration: Registration, plan: QueryPlan) -> tuple[Check, bool]:
        check, _ = await super()._check(registration, plan)
        if not check.is_delegation_known and check.finding.verdict is Verdict.PUBLISHED:
            check = check._replace(finding=check.finding._replace(verdict=Verdict.NO_ANSWER))
        return check, False  # a resolver would remember that there is no key yet

    async def _ask(self, zone: Zone, question: Question) -> tuple[Zone, list[ServerResponse]]:
        """Of name servers, the referral that each gives, or those in the zone if it has that."""
        if question.rdtype != NS:
            return await super()._ask(zone, question)
        asked = queries.questions_of(zone, question)[0]  # as it was in the burst
        asking = (queries.ask(self.source, server, asked) for server in zone.servers)
        return zone, await queries.gather(asking)

    async def _finding(
        self, response: ServerResponse, record: DnsRecord, zone: str, *_: object
    ) -> ServerFinding:
        answer, wanted = response.answer, record.value.split()
        if answer is None:
            finding = Finding(Verdict.NO_ANSWER, str(response.failure))
            return ServerFinding(response.server.label, finding)
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
