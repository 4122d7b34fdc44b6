"""Which outcome a service's answer, or a ledger's registration, means for an entry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dkimctl import dkim
from dkimctl.models.registration import DomainSpec, Outcome, Registration, Result

_NAMES = 2  # signing domain and selector; the attributes of specs and registrations follow them
_ATTRIBUTES = DomainSpec._fields[_NAMES:]


def of_answer(spec: DomainSpec, registration: Registration) -> Result:
    """The outcome of one item of a service's answer (interface 7.3) to `spec`."""
    if registration.code == "201":
        return _judged(spec, registration, Outcome.CREATED)
    if registration.code == "409":
        return of_registered(spec, registration)
    if registration.code == "400":
        reason = registration.message or "the service answered 400"
        return Result(registration, Outcome.INVALID, reason)
    reason = f"the service answered {registration.code}"
    reason += f": {registration.message}" if registration.message else ""
    if spec.selector is None:
        # It may have been registered all the same, under a selector that nobody knows.
        return unanswered(spec, reason)
    return Result(registration, Outcome.FAILED, reason)


def of_registered(spec: DomainSpec, registration: Registration) -> Result:
    """The outcome of a registration that was there before, as `spec` asks for it."""
    if registration.is_taken:
        return Result(registration, Outcome.TAKEN, "somebody else has registered it")
    return _judged(spec, registration, Outcome.EXISTS)


def judged(registration: Registration, good: Outcome) -> Result:
    """`good`, unless the registration's record is not sound."""
    registration = dkim.with_key_len(registration)
    if fault := dkim.judge(registration):
        return Result(registration, Outcome.UNUSABLE, fault)
    return Result(registration, good)


def of_refusal(spec: DomainSpec, status: str, said: str) -> Result:
    """The outcome of an entry of a batch that was refused as a whole (interface 7.3)."""
    registration = as_asked(spec, code=status, message=said or None)
    return Result(registration, Outcome.INVALID, said or f"the service answered {status}")


def unanswered(spec: DomainSpec, reason: str) -> Result:
    """The outcome of an entry that was sent and has no usable answer."""
    return Result(as_asked(spec), Outcome.UNKNOWN, reason)


def pending(spec: DomainSpec, reason: str = "") -> Result:
    """The outcome of an entry that the service certainly has not registered for it yet."""
    return Result(as_asked(spec), Outcome.PENDING, reason)


def as_asked(
    spec: DomainSpec, *, code: str | None = None, message: str | None = None
) -> Registration:
    """What stands for an entry without an item: what it asks for, and no record."""
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


def standing(spec: DomainSpec, registrations: Sequence[Registration]) -> Registration | None:
    """The one of a domain's `registrations` (oldest first) that stands for `spec`, if any.

    For an entry without selector any registration of its domain stands, rather one that is
    as the entry asks, rather the newest.
    """
    if spec.selector is None:
        candidates = [found for found in registrations if not found.is_taken]
    else:
        key = spec.key
        candidates = [found for found in registrations if found.key == key]
    candidates.reverse()
    as_asked = (found for found in candidates if not differences(spec, found))
    return next(as_asked, None) or next(iter(candidates), None)


def differences(spec: DomainSpec, registration: Registration) -> list[str]:
    """What `spec` states and `registration` has otherwise; dates are compared as instants.

    An attribute that the service left out of its answer is no difference.
    """
    found = []
    for name, asked, registered in zip(
        _ATTRIBUTES, spec[_NAMES:], registration[_NAMES:], strict=False
    ):
        if asked is None or registered is None or _same(name, asked, registered):
            continue
        found.append(f"{name}: asked for {_shown(asked)}, registered {_shown(registered)}")
    return found


def _judged(spec: DomainSpec, registration: Registration, good: Outcome) -> Result:
    result = judged(registration, good)
    if result.outcome is good and (found := differences(spec, result.registration)):
        return Result(result.registration, Outcome.DIFFERS, "; ".join(found))
    return result


def _same(name: str, asked: object, registered: object) -> bool:
    if name != "start_date":
        return asked == registered
    try:
        return datetime.fromisoformat(str(asked)) == datetime.fromisoformat(str(registered))
    except (ValueError, OverflowError):
        return False


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
