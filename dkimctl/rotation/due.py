"""The tasks of a run of `rotate run`, as data: what was done, and what is left to others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import record_fault
from dkimctl.dns.verdicts import Check, Urgency, Verdict, urgency_of
from dkimctl.errors import DkimctlError, ExitCode, ServiceError
from dkimctl.models import KeyHistory, Registration, RegistrationKey
from dkimctl.rotation.life import urgency_of_start, warning_time
from dkimctl.rotation.retirement import Histories, Retirement, RetirementStatus
from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.dns.check import Progress
    from dkimctl.dns.queries import Source
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.publishing.plan import ConfiguredTarget
    from dkimctl.registration.limits import Limits, RunObserver
    from dkimctl.registration.retrying import Send


class Step(StrEnum):
    """What a run does with a key."""

    REGISTER = "register"
    PUBLISH = "publish"
    REMOVE = "remove"


class State(StrEnum):
    """How far a step is."""

    DONE = "done"
    DUE = "due"  # not done now: a dry run, or the service or a DNS server is down
    BY_HAND = "by hand"  # no target covers the record
    WAITING = "waiting"  # for all servers to have it
    BLOCKED = "blocked"  # the user has to decide; see the reason
    FAILED = "failed"


class Task(NamedTuple):
    """A step for one key."""

    step: Step
    state: State
    registration: Registration
    reason: str = ""
    urgency: Urgency = Urgency.NONE
    error: DkimctlError | None = None  # why it failed, or what is not known
    check: Check | None = None  # what DNS has for a record that is to be published

    def exit_codes(self) -> Iterator[ExitCode]:
        """What it means for the exit status of a run; nothing: all is well."""
        if self.urgency or self.state is State.BLOCKED:
            yield ExitCode.NO
        if self.error is not None:
            yield self.error.exit_code
        elif self.state is State.FAILED:
            yield ExitCode.SERVICE


class Report(NamedTuple):
    """The tasks of a run, and errors that concern more than one key."""

    tasks: Sequence[Task]
    errors: Sequence[DkimctlError] = ()
    postponed: int = 0  # successors that are due, but beyond the limit of the day
    #: Steps of which not all was found out, since the service or DNS could not be asked.
    unknown: frozenset[Step] = frozenset()

    @property
    def is_due(self) -> bool:
        """Whether a dry run has found something to do."""
        return any(task.state in (State.DUE, State.BY_HAND) for task in self.tasks)

    @property
    def is_worth_mail(self) -> bool:
        """Whether something was done, failed, or is urgent."""
        return bool(self.errors) or any(
            task.state is State.DONE or any(task.exit_codes()) for task in self.tasks
        )

    def after(self, earlier: Report) -> Report:
        """This report, of a run just after an earlier one, with what that one has done."""
        done = [task for task in earlier.tasks if task.state is State.DONE]
        unknown = self.unknown | earlier.unknown
        return self._replace(tasks=[*done, *self.tasks], unknown=unknown)

    def exit_codes(self) -> Iterator[ExitCode]:
        for task in self.tasks:
            yield from task.exit_codes()
        yield from (error.exit_code for error in self.errors)


class Tools(NamedTuple):
    """The ledger, the service and DNS, as the caller reaches them."""

    open_ledger: Callable[..., Ledger]  # takes `for_writing`
    lock_account: Callable[[], AbstractContextManager[None]]  # of the account's registrations
    connect: Callable[[], Send]  # returns what sends a batch
    limits: Limits
    open_targets: Callable[[], Sequence[ConfiguredTarget]]
    open_source: Callable[[], Source]
    warn: Callable[[str], None]
    stopping: Callable[[Callable[[], None]], AbstractContextManager[None]]  # calls it at a signal
    #: Show the progress of registrations, by their number, and of checks, by the wanted verdict.
    observing: Callable[[int], AbstractContextManager[RunObserver]]
    watching: Callable[[Verdict], AbstractContextManager[Progress]]
    clock: Callable[[], datetime]


class RunPolicy(NamedTuple):
    """How to run."""

    rotation: RotationSettings
    wait: float = 120.0  # for how many seconds to look at DNS again after a change
    is_dry: bool = False  # only plan


class Refreshed(NamedTuple):
    """What the service says of successors, before what they replace is removed."""

    confirmed: frozenset[RegistrationKey] = frozenset()  # enabled, and as the ledger had them
    refused: Mapping[RegistrationKey, str] = {}  # others, with the reason
    error: DkimctlError | None = None  # what ended it early, if anything


class DnsChange(NamedTuple):
    """What became of a record that is not at its target as it should be, or that has none.

    DUE: it was written, or in a dry run it is to be written.
    """

    state: State
    reason: str = ""
    error: DkimctlError | None = None


DnsChanges = Mapping[RegistrationKey, DnsChange]


class Removal(NamedTuple):
    """A retired key, and the one that signs in its place, since when it `took_over`."""

    registration: Registration
    successor: Registration
    took_over: datetime


def publication_tasks(
    registrations: Iterable[Registration],
    changes: DnsChanges,
    checks: Mapping[RegistrationKey, Check],
    published: frozenset[RegistrationKey],
    histories: Histories,
    policy: RunPolicy,
    now: datetime,
) -> Iterator[Task]:
    """A task for each record that was changed, or is not published."""

    lead = policy.rotation.lead
    for registration in registrations:
        key, check, change = (
            registration.key,
            checks.get(registration.key),
            changes.get(registration.key),
        )
        if change is not None and change.state is State.DUE:
            task = Task(Step.PUBLISH, State.WAITING, registration, f"written; {_described(check)}")
            if policy.is_dry:
                task = Task(Step.PUBLISH, State.DUE, registration)
            elif key in published:
                task = Task(Step.PUBLISH, State.DONE, registration)
        elif key in published and (change is None or change.state is not State.FAILED):
            # Where the change failed, the next would fail, too.
            continue
        elif task_left := _task_left(Step.PUBLISH, registration, change, check):
            task = task_left
        else:
            continue
        urgency = Urgency.NONE
        if check is not None and check.finding.verdict is not Verdict.NO_ANSWER:
            urgency = urgency_of(check, now, warning_time(lead))
        elif key not in published:
            # What DNS has is not known: the last look that told it counts, if there was any.
            history = histories.get(key, KeyHistory())
            urgency = urgency_of_start(registration, history, now, lead)
        yield task._replace(urgency=urgency, check=check)


def unusable(step: Step, registrations: Iterable[Registration]) -> Iterator[Task]:
    """The tasks of keys that have no sound record: none of them is published or removed."""
    for registration in registrations:
        if fault := record_fault(registration):
            yield Task(step, State.BLOCKED, registration, f"its record is not usable: {fault}")


def removal_tasks(
    removals: Iterable[Removal],
    left: Iterable[Registration],
    changes: DnsChanges,
    checks: Mapping[RegistrationKey, Check],
    policy: RunPolicy,
    now: datetime,
) -> Iterator[Task]:
    """A task for each retired record that is not gone yet; those `left` are sound."""
    grace, lead = policy.rotation.grace, policy.rotation.lead
    due = {removal.registration.key: removal.took_over + grace for removal in removals}
    for registration in left:
        change = changes.get(registration.key)
        if policy.is_dry and change is not None and change.state is State.DUE:
            yield Task(Step.REMOVE, State.DUE, registration)
            continue
        task, since = (
            _task_left(Step.REMOVE, registration, change, checks.get(registration.key)),
            due[registration.key],
        )
        if task is None:
            continue
        # Where DNS gave no answer, nobody knows whether it is there.
        if task.state is State.WAITING and task.error is None and now > since + lead:
            reason = f"{task.reason}; to be removed since {since:%Y-%m-%d}"
            task = task._replace(state=State.BLOCKED, reason=reason)
        yield task


def _task_left(
    step: Step, registration: Registration, change: DnsChange | None, check: Check | None
) -> Task | None:
    """The task of a record that could not be changed, or that servers do not have yet."""
    state = State.WAITING if change is None else change.state
    if change is not None and state in (State.FAILED, State.BLOCKED):
        return Task(step, state, registration, change.reason, error=change.error)
    if check is None:
        return None
    seen = _described(check) if step is Step.PUBLISH else f"DNS now: {check.finding.verdict}"
    if check.finding.verdict is Verdict.NO_ANSWER:
        return Task(step, State.WAITING, registration, seen, error=ServiceError(seen))
    return Task(
        step, State.BY_HAND if state is State.BY_HAND else State.WAITING, registration, seen
    )


def _described(check: Check | None) -> str:
    """What DNS has for a record that is not published."""
    if check is None:
        return "DNS was not checked"
    verdict, reason = check.finding.verdict, check.finding.reason
    return f"DNS now: {verdict} ({reason})" if reason else f"DNS now: {verdict}"


def find_removals(
    statuses: Iterable[RetirementStatus],
    confirmed: Collection[RegistrationKey],
    published: Collection[RegistrationKey],
) -> list[Removal]:
    """The retired keys of which a successor is `published` and `confirmed` by the service."""
    removals = []
    for status in statuses:
        if status.retirement is not Retirement.RETIRED or status.takeover is None:
            continue
        sure = (
            successor
            for successor in status.successors
            if successor.key in confirmed and successor.key in published
        )
        if (successor := next(sure, None)) is not None:
            removals.append(Removal(status.registration, successor, status.takeover.took_over))
    return removals


def refused_removals(before: Iterable[RetirementStatus], refreshed: Refreshed) -> Iterator[Task]:
    """The tasks of keys that stay, since the service has not confirmed any of their successors.

    `before` are the statuses before the service was asked.
    """
    for status in before:
        keys = [successor.key for successor in status.successors]
        if not status.is_over or not keys or not refreshed.confirmed.isdisjoint(keys):
            continue
        reason = refreshed.refused.get(keys[0])
        if reason is not None and refreshed.error is None:
            text = f"its successor {keys[0].selector}: {reason}; so this one stays"
            yield Task(Step.REMOVE, State.BLOCKED, status.registration, text)
        else:
            text = f"the service has not confirmed its successor {keys[0].selector}"
            yield Task(Step.REMOVE, State.DUE, status.registration, text)


def waiting_removals(statuses: Iterable[RetirementStatus]) -> Iterator[Task]:
    """The tasks of keys whose grace period is over, but that cannot be removed yet."""
    for status in statuses:
        is_due = status.retirement is Retirement.DUE and status.is_over
        if is_due or status.retirement is Retirement.UNKNOWN:
            yield Task(Step.REMOVE, State.WAITING, status.registration, status.reason)
