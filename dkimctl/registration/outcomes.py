"""The outcome of an entry, from the service's answer or from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from dkimctl import dkim
from dkimctl.errors import DkimctlError, ServiceError
from dkimctl.models import ClosedKey, DomainSpec, Outcome, Registration, Result, key_of, utc_time

_ATTRIBUTES = ("key_len", "start_date", "default", "enable")  # what an entry asks of its key
_LASTING = ("default", "enable")  # what each key of a domain has, however often it is rotated


def of_answer(spec: DomainSpec, registration: Registration) -> Result:
    """The outcome of `spec`, from its item in the service's answer (interface 7.3)."""
    if registration.code == "201":
        return _compared(spec, registration, Outcome.CREATED)
    if registration.code == "409":
        return of_registered(spec, registration)
    if registration.code == "400":
        reason = registration.message or "the service answered 400"
        return Result(registration, Outcome.INVALID, reason)
    reason = f"the service answered {registration.code}"
    reason += f": {registration.message}" if registration.message else ""
    if spec.selector is None:
        # It may be registered nevertheless, under an unknown selector.
        return unanswered(spec, reason)
    return Result(registration, Outcome.FAILED, reason)


def of_registered(spec: DomainSpec, registration: Registration) -> Result:
    """The outcome of `spec`, which was registered before: what is implied makes no difference."""
    if registration.is_taken:
        return Result(registration, Outcome.TAKEN, "another client has registered it")
    names = [name for name in _ATTRIBUTES if name not in spec.implied]
    return _compared(spec, registration, Outcome.EXISTS, names)


def verified(registration: Registration, outcome: Outcome) -> Result:
    """`outcome`, or "unusable" if the registration's record has a fault."""
    registration = dkim.with_key_len(registration)
    if fault := dkim.record_fault(registration):
        return Result(registration, Outcome.UNUSABLE, fault)
    return Result(registration, outcome)


def of_refusal(spec: DomainSpec, status: str, detail: str) -> Result:
    """The outcome of an entry whose batch was refused as a whole (interface 7.3)."""
    registration = _requested(spec)._replace(code=status, message=detail or None)
    return Result(registration, Outcome.INVALID, detail or f"the service answered {status}")


def unanswered(spec: DomainSpec, reason: str) -> Result:
    """The outcome of an entry that was sent and has no usable answer."""
    return Result(_requested(spec), Outcome.UNKNOWN, reason)


def pending(spec: DomainSpec, reason: str = "") -> Result:
    """The outcome of an entry that is certainly not registered by its request."""
    return Result(_requested(spec), Outcome.PENDING, reason)


def not_sent(spec: DomainSpec, error: DkimctlError) -> Result:
    """The outcome of an entry whose domain is in a pool, and that gets no selector of it."""
    outcome = Outcome.FAILED if isinstance(error, ServiceError) else Outcome.BLOCKED
    return Result(_requested(spec), outcome, "; ".join(filter(None, (error.message, error.hint))))


def registration_for(
    spec: DomainSpec, registrations: Sequence[Registration], now: datetime
) -> Registration | None:
    """The one of a domain's `registrations` (oldest first) that `spec` means, if any.

    An entry without selector means the domain's current key: the newest of ours that is enabled
    and has begun, or else the newest. Those with the `default` and `enable` that the entry states
    come first.
    """
    if spec.selector is not None:
        key = spec.key
        return next((known for known in registrations if known.key == key), None)
    ours = [known for known in registrations if not known.is_taken]
    if len(ours) > 1:  # seldom
        same = [known for known in ours if not any(_differences(spec, known, _LASTING))]

        # By age; those that are enabled and have begun come last.
        def order(registration: Registration) -> tuple[bool, datetime]:
            start = registration.starts_at
            is_current = registration.signs and (start is None or start <= now)
            return is_current, registration.created_at or datetime.min.replace(tzinfo=UTC)

        ours = sorted(same or ours, key=order)
    return ours[-1] if ours else None


def of_closed(spec: DomainSpec, closed: ClosedKey) -> Result:
    """The outcome of `spec`, whose key was replaced and removed."""
    reason = f"replaced by {closed.replaced_by}; " if closed.replaced_by else ""
    day = f" on {closed.closed_at.date()}" if closed.closed_at else ""
    return Result(_requested(spec), Outcome.RETIRED, f"{reason}its record was removed{day}")


def begins_early(spec: DomainSpec, registration: Registration, now: datetime) -> bool:
    """Whether a new key signs since it was registered, although `spec` states a start after `now`.

    Then the clock here, which said `now`, is slow. Or it is a successor, which was sent again after
    its start, since an earlier request for it had no answer.
    """
    if registration.code != "201" or not registration.signs:
        return False
    stated, start = utc_time(spec.start_date), utc_time(registration.start_date)
    registered = utc_time(registration.regist_date)
    if stated is None or start is None or registered is None:
        return False
    return start <= registered and (stated > now or spec.replaces is not None)


def _differences(
    spec: DomainSpec, registration: Registration, names: Sequence[str]
) -> Iterator[str]:
    """Where it differs from what `spec` states. An attribute that the service omits does not."""
    for name in names:
        asked, has = getattr(spec, name), getattr(registration, name)
        if asked is None or has is None or asked == has:
            continue
        if name == "start_date" and utc_time(asked) == utc_time(has) is not None:
            continue
        # As in JSON.
        words = (str(value).lower() if isinstance(value, bool) else value for value in (asked, has))
        yield "{}: asked for {}, registered {}".format(name, *words)


def _compared(
    spec: DomainSpec,
    registration: Registration,
    outcome: Outcome,
    names: Sequence[str] = _ATTRIBUTES,
) -> Result:
    """The same as `verified`, or "differs"."""
    result = verified(registration, outcome)
    differences = "; ".join(_differences(spec, result.registration, names))
    if result.outcome is outcome and differences:
        reason = f"{differences}; the service has no call to change a key"
        return Result(result.registration, Outcome.DIFFERS, reason)
    return result


def _requested(spec: DomainSpec) -> Registration:
    """A registration as requested, without a record: for an entry that has no item."""
    return Registration(
        spec.sign_domain, spec.selector, spec.key_len, spec.start_date, spec.default, spec.enable
    )


def match(
    specs: Sequence[DomainSpec], items: Iterable[Registration]
) -> tuple[list[Registration | None], list[Registration]]:
    """Find the entry of each item by signing domain and selector.

    Returns the answer to each entry, None if it has no item, and the items without an entry.

    An item with a selector that was not requested belongs to its domain's entry without selector;
    one without selector to the only entry of its domain. Of two items for one entry, the first
    one with a record counts, or else the first.
    """
    items = list(items)
    if [item[:2] for item in items] == [spec[:2] for spec in specs]:  # nearly always
        return [*items], []
    by_key = {spec.key: position for position, spec in enumerate(specs)}
    by_domain: dict[str, list[int]] = {}
    for key, position in by_key.items():
        by_domain.setdefault(key.sign_domain, []).append(position)
    answers: list[Registration | None] = [None] * len(specs)
    strays = []
    for item in items:
        at = by_key.get(item.key, by_key.get(key_of(item.sign_domain, None)))
        if at is None and item.selector is None:
            of_domain = by_domain.get(item.key.sign_domain, [])
            at = of_domain[0] if len(of_domain) == 1 else None
        if at is None:
            strays.append(item)
            continue
        if (before := answers[at]) is not None:
            if before.record is not None or item.record is None:
                strays.append(item)
                continue
            strays.append(before)
        # With the domain as the entry spells it, and the entry's selector if it has none. Nearly
        # always it is so, and a copy takes as long as all the rest.
        domain, selector = specs[at].sign_domain, item.selector or specs[at].selector
        is_named = item.sign_domain == domain and item.selector is not None
        answers[at] = item if is_named else item._replace(sign_domain=domain, selector=selector)
    return answers, strays
