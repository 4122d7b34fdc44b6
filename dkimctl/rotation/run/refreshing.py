"""Ask the service for successors once more, before what they replace is removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from dkimctl.errors import DkimctlError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import (
    USABLE,
    DomainSpec,
    Registration,
    RegistrationKey,
    Result,
)
from dkimctl.rotation.retirement import RetirementStatus
from dkimctl.rotation.run.entries import spec_of
from dkimctl.rotation.run.sending import send
from dkimctl.rotation.run.tools import RunPolicy, Tools
from dkimctl.rotation.succession import Histories

_NONE: Mapping[RegistrationKey, str] = MappingProxyType({})


class Refreshed(NamedTuple):
    """`confirmed`: the keys that the service has, enabled and as the ledger had them.

    `refused`: others, with the reason. `error`: what ended it early, if anything.
    """

    confirmed: frozenset[RegistrationKey] = frozenset()
    refused: Mapping[RegistrationKey, str] = _NONE
    error: DkimctlError | None = None


def deciding_successors(statuses: Iterable[RetirementStatus]) -> list[Registration]:
    """The successors of the keys whose grace period is over, each once."""
    return list(
        dict.fromkeys(one for status in statuses if status.is_over for one in status.successors)
    )


def refresh(
    successors: Iterable[Registration],
    histories: Histories,
    ledger: Ledger,
    policy: RunPolicy,
    tools: Tools,
    now: datetime,
) -> Refreshed:
    """Send entries for these keys, under the lock of the account; the ledger gets the answers.

    The service answers with what it has (409, interface 7.3). A key that it no longer has is
    registered anew, and starts as late as any successor.
    """
    known = {one.key: one for one in successors}
    specs = [_spec(one, histories, policy, now) for one in known.values()]
    sent = send(specs, ledger, tools, now, refresh=True)
    refused = {}
    for result in sent.results:
        key = result.registration.key
        if reason := _why_not_confirmed(result, known[key]):
            refused[key] = reason
    return Refreshed(frozenset(known.keys() - refused.keys()), refused, sent.error)


def _spec(
    registration: Registration, histories: Histories, policy: RunPolicy, now: datetime
) -> DomainSpec:
    replaces = histories.get(registration.key, KeyHistory()).replaces
    spec = spec_of(registration, registration.selector, policy.rotation, now)
    return spec._replace(replaces=replaces)


def _why_not_confirmed(result: Result, known: Registration) -> str:
    """Why an old key has to stay; or ""."""
    answer = result.registration
    if result.outcome not in USABLE:
        return f"{result.outcome}: {result.reason}"
    if answer.enable is False:
        return "it is disabled at the service"
    if answer.code != "409" or answer.record != known.record:
        return "the service has another key for it now"
    return ""
