"""The outcome of an entry, from the service's answer or from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from dkimctl import dkim
from dkimctl.models.registration import DomainSpec, Outcome, Registration, Result, utc_time

_ATTRIBUTES = ("key_len", "start_date", "default", "enable")  # what an entry asks of its key
_LASTING = ("default", "enable")  # what each key of a domain has, however often it is rotated
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


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
    """The outcome of `spec`, which was registered before.

    Without selector, its `key_len` and `start_date` are for a new key: they make no difference.
    """
    if registration.is_taken:
        return Result(registration, Outcome.TAKEN, "another client has registered it")
    names = _LASTING if spec.selector is None else _ATTRIBUTES
    return _compared(spec, registration, Outcome.EXISTS, names)


def verified(registration: Registration, outcome: Outcome) -> Result:
    """`outcome`, or "unusable" if the registration's record has a fault."""
    registration = dkim.with_key_len(registration)
    if fault := dkim.record_fault(registration):
        return Result(registration, Outcome.UNUSABLE, fault)
    return Result(registration, outcome)


def of_refusal(spec: DomainSpec, status: str, detail: str) -> Result:
    """The outcome of an entry whose batch was refused as a whole (interface 7.3)."""
    registration = _requested(spec, code=status, message=detail or None)
    return Result(registration, Outcome.INVALID, detail or f"the service answered {status}")


def unanswered(spec: DomainSpec, reason: str) -> Result:
    """The outcome of an entry that was sent and has no usable answer."""
    return Result(_requested(spec), Outcome.UNKNOWN, reason)


def pending(spec: DomainSpec, reason: str = "") -> Result:
    """The outcome of an entry that is certainly not registered by its request."""
    return Result(_requested(spec), Outcome.PENDING, reason)


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
        return next((one for one in registrations if one.key == key), None)
    ours = [one for one in registrations if not one.is_taken]
    if len(ours) > 1:  # seldom
        same = [one for one in ours if not _differences(spec, one, _LASTING)]
        ours = _current_last(same or ours, now)
    return ours[-1] if ours else None


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


def _current_last(registrations: Sequence[Registration], now: datetime) -> list[Registration]:
    """Sorted by age, the newest last; at the end those that are enabled and have begun."""

    def order(registration: Registration) -> tuple[bool, datetime]:
        start = registration.starts_at
        is_current = registration.signs and (start is None or start <= now)
        return is_current, registration.created_at or _LONG_AGO

    return sorted(registrations, key=order)


def _differences(
    spec: DomainSpec, registration: Registration, names: Sequence[str] = _ATTRIBUTES
) -> list[str]:
    """Where `registration` differs from what `spec` states; dates are compared as times.

    An attribute that the service omits makes no difference.
    """
    differing = []
    for name in names:
        requested, registered = getattr(spec, name), getattr(registration, name)
        if requested is None or registered is None or _is_same(name, requested, registered):
            continue
        differing.append(f"{name}: asked for {_text(requested)}, registered {_text(registered)}")
    return differing


def _compared(
    spec: DomainSpec,
    registration: Registration,
    outcome: Outcome,
    names: Sequence[str] = _ATTRIBUTES,
) -> Result:
    """The same as `verified`, or "differs"."""
    result = verified(registration, outcome)
    if result.outcome is not outcome:
        return result
    if differing := _differences(spec, result.registration, names):
        return Result(result.registration, Outcome.DIFFERS, "; ".join(differing))
    return result


def _requested(
    spec: DomainSpec, *, code: str | None = None, message: str | None = None
) -> Registration:
    """A registration as requested, without a record: for an entry that has no item."""
    return Registration(
        spec.sign_domain,
        selector=spec.selector,
        key_len=spec.key_len,
        start_date=spec.start_date,
        default=spec.default,
        enable=spec.enable,
        code=code,
        message=message,
    )


def _is_same(name: str, requested: object, registered: object) -> bool:
    if name != "start_date":
        return requested == registered
    try:
        return datetime.fromisoformat(str(requested)) == datetime.fromisoformat(str(registered))
    except (ValueError, OverflowError):
        return False


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
