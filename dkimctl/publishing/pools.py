"""The selectors that new keys of delegated domains get: those that can be published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from dkimctl.dns.delegation import Delegation, DelegationState, check_delegations, delegations
from dkimctl.dns.queries import Source
from dkimctl.errors import DkimctlError, NegativeAnswer, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, Registration, RegistrationKey
from dkimctl.names import MAX_NAME, is_name, key_name_length
from dkimctl.publishing.plan import Action, Change, Target, make_plan
from dkimctl.publishing.targets import check_access
from dkimctl.settings.delegation import Pool


def assign_selectors(
    specs: Sequence[DomainSpec],
    ledger: Ledger,
    pool_of: Callable[[str], Pool | None],
    targets: Sequence[Target],
    open_source: Callable[[], Source],
    *,
    allow_shadowing: bool = False,
) -> Iterator[tuple[DomainSpec, DkimctlError | None]]:
    """Each spec with the next selector of its domain's pool, or why it gets none.

    No selector that the ledger knows is used again (409, interface 7.3). A spec whose domain is in
    no pool stays as it is. DNS and the targets are asked, and nothing is changed there.
    """
    pools = {spec.sign_domain: pool_of(spec.sign_domain) for spec in specs}
    known = (each for each in ledger.domains(with_values=False) if each.sign_domain in pools)
    used = {each.sign_domain: each.selectors for each in known}
    free = {
        domain: pool.free(used.get(domain, ()))
        for domain, pool in pools.items()
        if pool is not None
    }
    wanted = Counter(spec.sign_domain for spec in specs)  # several, for different mail
    found: dict[tuple[str, str], Delegation] = {}

    def look(names: Mapping[str, Sequence[str]]) -> None:
        asked = [
            delegation
            for domain, of_domain in names.items()
            if (pool := pools[domain]) is not None and of_domain
            for delegation in delegations(pool, domain, of_domain)
        ]
        try:
            checked = [*check_delegations(asked, open_source())] if asked else []
        except ServiceError as error:  # there is no resolver
            checked = [each._replace(reason=error.message) for each in asked]
        for each in checked:
            found.update(dict.fromkeys(((each.sign_domain, name) for name in each.selectors), each))

    # As a rule, the next ones are delegated; only if not, the others are asked for.
    look({domain: names[: wanted[domain]] for domain, names in free.items()})
    wrong = {
        domain
        for (domain, _), each in found.items()
        if each.state not in (DelegationState.RIGHT, DelegationState.UNKNOWN)
    }
    look({domain: free[domain][wanted[domain] :] for domain in wrong})

    chosen: list[tuple[DomainSpec, Registration | None, DkimctlError | None]] = []
    for spec in specs:
        domain, pool = spec.sign_domain, pools[spec.sign_domain]
        if pool is None:
            chosen.append((spec, None, None))
            continue
        asked = {name: found[domain, name] for name in free[domain] if (domain, name) in found}
        selector, error = _next(pool, domain, asked)
        registration = None
        if selector:
            free[domain].remove(selector)
            spec = spec._replace(selector=selector)  # noqa: PLW2901
            record = DnsRecord(pool.target_of(domain, selector), "TXT", "")
            registration = Registration(domain, selector, record=record)
        chosen.append((spec, registration, error))
    registrations = [each for _, each, _ in chosen if each is not None]
    faults = _faults(registrations, targets, open_source, allow_shadowing=allow_shadowing)
    for spec, registration, error in chosen:
        yield spec, error or (faults.get(registration.key) if registration else None)


def _next(
    pool: Pool, domain: str, free: Mapping[str, Delegation]
) -> tuple[str, DkimctlError | None]:
    """The first selector that is delegated, of those that are free; or why there is none."""
    if not free:
        return "", NegativeAnswer(
            f"no selector is left in the pool of {domain} ({pool.selectors}, 1 to {pool.count})",
            hint="raise `count` of its `delegation` in the config file, then `dkimctl handoff "
            f"--delegate {domain}`",
        )
    first = next(iter(free.values()))
    if first.state is DelegationState.UNKNOWN:
        what = f"DNS does not say whether {first.fqdn} is delegated"
        return "", ServiceError(f"{what}: {first.reason}" if first.reason else what)
    right = [name for name, each in free.items() if each.state is DelegationState.RIGHT]
    if not right:
        what = f"{first.fqdn} is not delegated: its {first.rdtype} is {first.state}"
        return "", NegativeAnswer(
            f"{what} ({', '.join(first.found)})" if first.found else what,
            hint=f"`dkimctl handoff --delegate {domain}` has what its DNS needs, and `dkimctl "
            f"check-dns --delegation {domain}` checks it",
        )
    length = key_name_length(domain, right[0])
    if length > MAX_NAME or not is_name(pool.target_of(domain, right[0])):
        what = f"the names of {domain} are longer than {MAX_NAME} octets"
        return "", NegativeAnswer(what, hint="use shorter templates in `delegation`")
    return right[0], None


def _faults(
    at_targets: Sequence[Registration],
    targets: Sequence[Target],
    open_source: Callable[[], Source],
    *,
    allow_shadowing: bool,
) -> Mapping[RegistrationKey, DkimctlError]:
    """Why new records could not be published, by the key."""
    faults = {
        registration.key: zone.why_not_written
        for zone in check_access(at_targets, targets)[0]
        for registration in zone.registrations
        if zone.why_not_written is not None
    }
    left = [each for each in at_targets if each.key not in faults]
    plan = make_plan(left, targets, open_source, lambda: (), allow_shadowing=allow_shadowing)
    return faults | {change.key: fault for change in plan if (fault := _fault(change)) is not None}


def _fault(change: Change) -> DkimctlError | None:
    if change.error is not None:
        return change.error
    match change.action:
        case Action.CREATE:
            return None
        case Action.UNCOVERED:
            return NegativeAnswer(
                f"no DNS target has the zone of {change.fqdn}",
                hint="add the zone to `dns` in the config file",
            )
        case Action.BLOCKED:
            hint = "or let `delegation` lead to a zone without it" if change.add_first else ""
            return NegativeAnswer(f"{change.fqdn}: {change.full_reason}", hint=hint)
        case _:
            return NegativeAnswer(
                f"{change.fqdn} has a TXT record already",
                hint="if it is of a key that another machine has registered, `dkimctl ledger "
                "import` takes that over; if not, remove it",
            )
