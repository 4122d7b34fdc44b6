"""Register the successors that are due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import DkimctlError
from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import USABLE, DomainSpec, Outcome, Result, named
from dkimctl.registration import outcomes
from dkimctl.rotation.run.due import DueSuccessors, find_due
from dkimctl.rotation.run.report import State, Step, Task
from dkimctl.rotation.run.sending import Sent, send
from dkimctl.rotation.run.tools import RunPolicy, Tools

_MAX_SKEW = timedelta(days=1)
_MAX_ROUNDS = 3  # of selectors that another account has
_STATES = {
    Outcome.PENDING: State.DUE,
    Outcome.FAILED: State.FAILED,
    Outcome.UNKNOWN: State.FAILED,
}


class Registered(NamedTuple):
    """The tasks of registering, and what ended it early, if anything."""

    tasks: Sequence[Task]
    error: DkimctlError | None = None
    postponed: int = 0


def planned(due: DueSuccessors) -> Registered:
    """What a dry run says of successors."""
    tasks = [
        Task(Step.REGISTER, State.DUE, outcomes.pending(spec).registration, _replaces(spec))
        for spec in due.specs
    ]
    return Registered([*tasks, *due.held], postponed=due.postponed)


def register_due(
    ledger: Ledger, selection: Selection, policy: RunPolicy, tools: Tools, now: datetime
) -> Registered:
    """Register what is due, under the lock of the account.

    Where another account has a selector, another one is tried. Raises LedgerError, Interrupted.
    """
    due = find_due(ledger, selection, policy.rotation, now)
    tasks, specs, error = [*due.held], due.specs, None
    for rounds_left in reversed(range(_MAX_ROUNDS)):
        sent = send(specs, ledger, tools, now, refresh=False)
        _warn_of_clock(sent.results, tools, now)
        taken = {one.registration.key for one in sent.results if one.outcome is Outcome.TAKEN}
        may_retry = taken and rounds_left and sent.error is None
        again = find_due(ledger, selection, policy.rotation, now).specs if may_retry else ()
        new, error = _tasks(specs, sent), sent.error
        lines = {(spec.sign_domain, spec.default) for spec in specs if spec.key in taken}
        specs = [spec for spec in again if (spec.sign_domain, spec.default) in lines]
        tasks += [task for task in new if not (specs and task.registration.key in taken)]
        if not specs:
            break
    return Registered(tasks, error, due.postponed)


def _warn_of_clock(results: Sequence[Result], tools: Tools, now: datetime) -> None:
    """Warn if the service says that new keys were made long before `now`."""
    made = (
        result.registration.created_at for result in results if result.outcome is Outcome.CREATED
    )
    late = max((now - one for one in made if one is not None), default=timedelta())
    if late > _MAX_SKEW:
        tools.warn(
            f"the clock of this machine is {late.days} days ahead of the service's: new keys start "
            "that much too late; correct the clock, and register others in their place"
        )


def _tasks(specs: Sequence[DomainSpec], sent: Sent) -> Iterator[Task]:
    by_key = {spec.key: spec for spec in specs}
    for result in sent.results:
        yield _task(result, by_key[result.registration.key], sent.begun_early)


def _task(result: Result, spec: DomainSpec, begun_early: Sequence[str]) -> Task:
    registration, outcome, reason = result
    if outcome not in USABLE:
        state = _STATES.get(outcome, State.BLOCKED)
        return Task(Step.REGISTER, state, registration, f"{outcome}: {reason}")
    if registration.enable is False and spec.enable:
        return Task(Step.REGISTER, State.BLOCKED, registration, "it is disabled at the service")
    urgency = Urgency.SIGNING if named(registration) in begun_early else Urgency.NONE
    return Task(Step.REGISTER, State.DONE, registration, _replaces(spec), urgency)


def _replaces(spec: DomainSpec) -> str:
    return f"replaces {spec.replaces}, signs from {spec.start_date}"
