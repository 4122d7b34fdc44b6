"""The outcome of an entry, from the service's answer or from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dkimctl import dkim
from dkimctl.models.registration import DomainSpec, Outcome, Registration, Result

_ATTRIBUTES = ("key_len", "start_date", "default", "enable")  # what an entry asks of its key


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
    """The outcome of `spec`, which was registered before."""
    if registration.is_taken:
        return Result(registration, Outcome.TAKEN, "another client has registered it")
    return _compared(spec, registration, Outcome.EXISTS)


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
    spec: DomainSpec, registrations: Sequence[Registration]
) -> Registration | None:
    """The one of a domain's `registrations` (oldest first) that `spec` means, if any.

    An entry without selector means any of ours: preferably one with the attributes that it asks
    for, and preferably the newest.
    """
    if spec.selector is None:
        candidates = [registration for registration in registrations if not registration.is_taken]
    else:
        key = spec.key
        candidates = [registration for registration in registrations if registration.key == key]
    candidates.reverse()
    same = (candidate for candidate in candidates if not differences(spec, candidate))
    return next(same, None) or next(iter(candidates), None)


def differences(spec: DomainSpec, registration: Registration) -> list[str]:
    """Where `registration` differs from what `spec` states; dates are compared as times.

    An attribute that the service omits makes no difference.
    """
    differing = []
    for name in _ATTRIBUTES:
        requested, registered = getattr(spec, name), getattr(registration, name)
        if requested is None or registered is None or _is_same(name, requested, registered):
            continue
        differing.append(f"{name}: asked for {_text(requested)}, registered {_text(registered)}")
    return differing


def _compared(spec: DomainSpec, registration: Registration, outcome: Outcome) -> Result:
    """The same as `verified`, or "differs"."""
    result = verified(registration, outcome)
    if result.outcome is outcome and (differing := differences(spec, result.registration)):
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
