"""The tasks of a run of `rotate run`, as data: what is planned, what was done, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dns.verdicts import Check, Urgency, Verdict, urgency_of
from dkimctl.errors import DkimctlError, ExitCode, ServiceError
from dkimctl.models import KeyHistory, Registration, RegistrationKey
from dkimctl.rotation.life import urgency_of_start, warning_time
from dkimctl.rotation.retirement import Histories, described
from dkimctl.settings.rotation import Policies
from dkimctl.text import few

if TYPE_CHECKING:
    from dkimctl.dns.check import Progress
    from dkimctl.dns.queries import Source
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.publishing.plan import Target
    from dkimctl.registration.limits import Limits, RunObserver
    from dkimctl.registration.retrying import Send


class Step(StrEnum):
    """What a run does with a key."""

    REGISTER = "register"
    PUBLISH = "publish"
    REMOVE = "remove"


class State(StrEnum):
    """How far a step is, in the order in which people see them."""

    FAILED = "failed"
    BLOCKED = "blocked"  # the user has to decide; see the reason
    BY_HAND = "by hand"  # no target covers the record
    DONE = "done"
    DUE = "due"  # planned, and not done: a dry run, or the service or a DNS server is down
    WAITING = "waiting"  # for all servers to have it


class Task(NamedTuple):
    """A step for one key."""

    step: Step
    state: State
    registration: Registration
    reason: str = ""
    urgency: Urgency = Urgency.NONE
    error: DkimctlError | None = None  # why it failed, or what is not known
    check: Check | None = None  # what DNS has for a record to publish
    alias_end: str = ""  # where its name leads, an alias, and where the record is to change

    def exit_codes(self) -> Iterator[ExitCode]:
        """What it means for the exit status of a run; nothing: all is well."""
        if self.urgency or self.state is State.BLOCKED:
            yield ExitCode.NO
        if self.error is not None:
            yield self.error.exit_code
        elif self.state is State.FAILED:
            yield ExitCode.SERVICE


class FailingMail(NamedTuple):
    """Mail of the last 7 days with a key, much of which failed, by DMARC reports."""

    sign_domain: str
    selector: str
    passed: int  # messages
    failed: int
    networks: Sequence[str]  # where mail that failed came from
    is_removed: bool

    def __str__(self) -> str:
        messages = f"{self.failed:,} of {self.passed + self.failed:,} messages"
        return f"{messages} in the last 7 days, from {few(self.networks)}"


class Report(NamedTuple):
    """The tasks of a run, and errors that concern more than one key."""

    tasks: Sequence[Task]
    errors: Sequence[DkimctlError] = ()
    postponed: int = 0  # successors that are due, but beyond the limit of the day
    #: Steps of which not all was found out, since the service or DNS could not be asked.
    unknown: frozenset[Step] = frozenset()
    limits: Sequence[str] = ()  # of policies that cannot keep up with their keys
    not_asked: int = 0  # keys that a dry run did not look up: the last look saw them published
    failing: Sequence[FailingMail] = ()
    unreported: Sequence[str] = ()  # domains that sign, and had no DMARC report for NO_REPORTS_FOR

    @property
    def is_due(self) -> bool:
        """Whether a dry run has found something to do."""
        return any(task.state in (State.DUE, State.BY_HAND) for task in self.tasks)

    @property
    def is_worth_mail(self) -> bool:
        """Whether something was done, failed, or is urgent."""
        return any(task.state is State.DONE for task in self.tasks) or any(self.exit_codes())

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
    open_targets: Callable[[], Sequence[Target]]
    open_source: Callable[[], Source]
    warn: Callable[[str], None]
    stopping: Callable[[Callable[[], None]], AbstractContextManager[None]]  # calls it at a signal
    #: Show the progress of registrations, by their number, and of checks, by the wanted verdict.
    observing: Callable[[int], AbstractContextManager[RunObserver]]
    watching: Callable[[Verdict], AbstractContextManager[Progress]]
    clock: Callable[[], datetime]
    #: Asks the service for its time; None: it does not say. Raises DkimctlError.
    ask_time: Callable[[], datetime | None]


class RunPolicy(NamedTuple):
    """How to run."""

    rotation: Policies
    wait: float = 120.0  # for how many seconds to look at DNS again after a change
    is_dry: bool = False  # only plan
    allow_shadowing: bool = False  # publish also what ends the answers of a wildcard
    despite_reports: bool = False  # remove also keys with which mail passes


def publication_tasks(
    changes: Iterable[Task],
    checks: Mapping[RegistrationKey, Check],
    published: Collection[RegistrationKey],
    histories: Histories,
    policies: Policies,
    now: datetime,
) -> Iterator[Task]:
    """What is left of `changes` after a look at DNS, or was done, each with its urgency.

    A change is DUE, or DONE once it is written; WAITING needs none.
    """
    for change in changes:
        registration = change.registration
        key, check = registration.key, checks.get(registration.key)
        lead = policies.of(key.sign_domain).lead
        if change.state is State.DONE and key not in published:
            reason = f"written; {described(check)}" if check else "written; DNS was not checked"
            task = change._replace(state=State.WAITING, reason=reason)
        elif change.state in (State.DUE, State.DONE, State.FAILED):
            task = change  # where the change failed, the next would fail, too
        elif key in published or not (left := _left(change, check)):
            continue
        else:
            task = left
        urgency = Urgency.NONE
        if check is not None and check.finding.verdict is not Verdict.NO_ANSWER:
            urgency = urgency_of(check, now, warning_time(lead))
        elif key not in published:
            # What DNS has is not known: the last look that found out counts, if there was any.
            history = histories.get(key, KeyHistory())
            urgency = urgency_of_start(registration, history, now, lead)
        yield task._replace(urgency=urgency, check=check)


def removal_tasks(
    changes: Iterable[Task],
    checks: Mapping[RegistrationKey, Check],
    due: Mapping[RegistrationKey, datetime],
    policies: Policies,
    now: datetime,
) -> Iterator[Task]:
    """What is left of `changes` to records that are not gone yet, and since when each is due."""
    for change in changes:
        key = change.registration.key
        task = change if change.state is State.DUE else _left(change, checks.get(key))
        if task is None:
            continue
        # Where DNS gave no answer, nobody knows whether it is there.
        is_sure = task.state is State.WAITING and task.error is None
        if is_sure and now > due[key] + policies.of(key.sign_domain).lead:
            reason = f"{task.reason}; to be removed since {due[key]:%Y-%m-%d}"
            task = task._replace(state=State.BLOCKED, reason=reason)
        yield task


def _left(change: Task, check: Check | None) -> Task | None:
    """The task of a record that could not be changed, or that servers do not have as it should be.

    None if nothing is known of it.
    """
    if change.state in (State.FAILED, State.BLOCKED):
        return change
    if check is None:
        return None
    change = change._replace(alias_end=check.alias_end)
    is_removal = change.step is Step.REMOVE
    seen = f"DNS now: {check.finding.verdict}" if is_removal else described(check)
    if check.finding.verdict is Verdict.NO_ANSWER:
        return change._replace(state=State.WAITING, reason=seen, error=ServiceError(seen))
    if change.state is State.BY_HAND:
        return change._replace(reason=change.reason or seen)
    return change._replace(state=State.WAITING, reason=seen)
