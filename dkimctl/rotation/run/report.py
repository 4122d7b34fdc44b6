"""What a run has done, and what it leaves to others or to the next run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dns.verdicts import Check, Urgency
from dkimctl.errors import DkimctlError, ExitCode
from dkimctl.models.registration import Registration


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
    """A step for one key; `error` is why it failed, or what is not known.

    `check` is what DNS has for a record that is to be published.
    """

    step: Step
    state: State
    registration: Registration
    reason: str = ""
    urgency: Urgency = Urgency.NONE
    error: DkimctlError | None = None
    check: Check | None = None

    def exit_codes(self) -> Iterator[ExitCode]:
        """What it means for the exit status of a run; nothing: all is well."""
        if self.urgency or self.state is State.BLOCKED:
            yield ExitCode.NO
        if self.error is not None:
            yield self.error.exit_code
        elif self.state is State.FAILED:
            yield ExitCode.SERVICE


class Report(NamedTuple):
    """The tasks of a run, and errors that concern more than one key.

    `postponed`: successors that are due, but beyond the limit of the day. `unknown`: steps of
    which the run has not found out all, since the service or DNS could not be asked.
    """

    tasks: Sequence[Task]
    errors: Sequence[DkimctlError] = ()
    postponed: int = 0
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
