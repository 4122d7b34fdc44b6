"""The selectors that new keys of delegated domains get: those that can be published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from dkimctl.dns.check import Checker, DelegationChecker, delegations
from dkimctl.dns.queries import Source
from dkimctl.dns.verdicts import Check, Verdict
from dkimctl.errors import DkimctlError, NegativeAnswer, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, Registration
from dkimctl.names import MAX_NAME
from dkimctl.publishing.plan import Action, Target, make_plan
from dkimctl.publishing.targets import faults_of, where_led
from dkimctl.settings.rotation import HOW_TO_EXTEND, Pool


def assign_selectors(
    specs: Sequence[DomainSpec], ledger: Ledger, pool_of: Callable[[str], Pool | None],
    targets: Sequence[Target], open_source: Callable[[], Source], *, allow_shadowing: bool = False,
) -> list[tuple[DomainSpec, DkimctlError | None]]:  # fmt: skip
    """Each spec with the next selector of its domain's pool, or why it gets none.

    No selector that the ledger knows is used again (409, interface 7.3). A spec stays as it is if
    its domain is in no pool, or if it was begun before. DNS and the targets are asked; nothing is
    changed there. Raises ServiceError without a resolver.
    """
    begun = ledger.begun_successors()
    pools = {
        spec.sign_domain: pool
        for spec in specs
        if spec.key not in begun and (pool := pool_of(spec.sign_domain)) is not None
    }
    if not pools:
        return [(spec, None) for spec in specs]
    source = open_source()
    known = (each for each in ledger.domains(with_values=False) if each.sign_domain in pools)
    used = {each.sign_domain: each.selectors for each in known}
    free = {domain: pool.free(used.get(domain, ())) for domain, pool in pools.items()}
    looked_at: dict[str, dict[str, Check]] = {domain: {} for domain in pools}

    def look(names: Mapping[str, Sequence[str]]) -> None:
        asked = [each for at in names for each in delegations(pools[at], at, names[at])]
        for check in DelegationChecker(source).check(asked):
            at = check.sign_domain
            looked_at[at] |= dict.fromkeys([check.selector] if check.selector else names[at], check)

    # As a rule, the next ones are delegated; only if not, the others are asked for.
    wanted = Counter(spec.sign_domain for spec in specs)  # several, for different mail
    look({domain: names[: wanted[domain]] for domain, names in free.items()})
    usual = {Verdict.PUBLISHED, Verdict.NO_ANSWER}
    look({
        domain: free[domain][wanted[domain] :]
        for domain, checks in looked_at.items()
        if not usual.issuperset(check.finding.verdict for check in checks.values())
    })  # fmt: skip

    assigned: list[tuple[DomainSpec, DkimctlError | None]] = []
    new: list[Registration] = []
    for spec in specs:
        domain, pool = spec.sign_domain, pools.get(spec.sign_domain)
        if pool is None or spec.key in begun:
            assigned.append((spec, None))
            continue
        try:
            selector = _next(pool, domain, looked_at[domain])
        except DkimctlError as error:
            assigned.append((spec, error))
            continue
        del looked_at[domain][selector]
        record = DnsRecord(f"{selector}._domainkey.{domain}", "TXT", "v=DKIM1; p=AAAA")  # no key
        new.append(Registration(domain, selector, record=record))
        assigned.append((spec._replace(selector=selector), None))
    at_targets = [*where_led(new, pool_of)]
    faults = faults_of(at_targets, targets)
    for change in make_plan(
        at_targets, targets, lambda: source, lambda: (), allow_shadowing=allow_shadowing,
        replace_foreign=True,  # no record of another is replaced, but told as any other
    ):  # fmt: skip
        if change.action is not Action.CREATE:
            why = "it has a TXT record already: `dkimctl ledger import` takes over other ledgers"
            if change.action is Action.UNCOVERED:
                why = "no DNS target has its zone: add it to `dns` in the config file"
            fault = change.error or NegativeAnswer(f"{change.fqdn}: {change.full_reason or why}")
            faults[change.key] = faults.get(change.key) or fault
    # Nothing may answer yet, or the removal of the record could not be proved.
    ends = {each.key: each.record.fqdn for each in at_targets if each.record is not None}
    asked = [each for each in new if not faults.get(each.key)]
    for check in Checker(source, expect_absent=True).check(asked):
        verdict, reason, _ = check.finding
        if verdict is Verdict.NO_ANSWER:
            faults[check.key] = ServiceError(f"{check.fqdn}: {reason}")
        elif verdict is not Verdict.MISSING or (check.alias_end or check.fqdn) != ends[check.key]:
            what = f"{ends[check.key]}: something answers although it has no record, such as a"
            faults[check.key] = NegativeAnswer(f"{what} wildcard: remove that")
    return [(spec, error or faults.get(spec.key)) for spec, error in assigned]


def _next(pool: Pool, domain: str, free: Mapping[str, Check]) -> str:
    """The first selector that is delegated, of those that are free. Raises DkimctlError."""
    if not free:
        raise NegativeAnswer(
            f"no selector is left in the pool of {domain} ({pool.selectors}, 1 to {pool.count})",
            hint=HOW_TO_EXTEND.format(domain),
        )
    first = next(iter(free.values()))
    verdict, reason, _ = first.finding
    if verdict is Verdict.NO_ANSWER:
        raise ServiceError(f"DNS does not say whether {first.fqdn} is delegated: {reason}")
    right = [name for name, each in free.items() if each.finding.verdict is Verdict.PUBLISHED]
    if not right:
        what = f"{first.fqdn} is not delegated: its {'NS' if pool.ns else 'CNAME'} is {verdict}"
        raise NegativeAnswer(
            f"{what} ({reason})" if reason else what,
            hint=f"`dkimctl handoff --delegate {domain}` has what its DNS needs, and `dkimctl "
            f"check-dns --delegation {domain}` checks it",
        )
    if pool.is_too_long(domain, right[0]):
        what = f"the names of {domain} have more than {MAX_NAME} octets"
        raise NegativeAnswer(what, hint="use shorter templates in `delegation`")
    return right[0]
