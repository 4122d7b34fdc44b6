"""Make the changes of a plan, with a progress bar, until a signal stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress import PublicationProgress
from dkimctl.cli.terminal import stopping
from dkimctl.errors import Interrupted
from dkimctl.models.registration import RegistrationKey
from dkimctl.publishing.changes import Applied
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from dkimctl.publishing.plan import PublicationPlan


class Outcome(NamedTuple):
    """What became of the changes; `is_stopped`: not all were begun."""

    applied: dict[RegistrationKey, Applied]
    is_stopped: bool


def apply_changes(reporter: Reporter, plan: PublicationPlan) -> Outcome:
    """Make the changes of a plan. The first Ctrl-C or SIGTERM begins no more of them.

    Raises Interrupted at the second, which does not wait for those that were begun.
    """
    from dkimctl.publishing.plan import apply_plan

    total = sum(len(zone.to_apply) for zone in plan.zones)
    run = _Run(reporter, total)
    try:
        with stopping(run.stop), run.progress:
            apply_plan(plan, run.emit, is_stopped=lambda: run.is_stopped, wait=run.wait)
    except KeyboardInterrupt:
        made = sum(one.error is None for one in run.applied.values())
        raise Interrupted(
            f"interrupted: {made} of {counted(total, 'change')} made, perhaps more",
            hint=f"to go on: `{next_steps.same_command()}`",
        ) from None
    return Outcome(run.applied, run.is_stopped and len(run.applied) < total)


class _Run:
    """What has become of changes so far. `stop` may be called in a signal handler."""

    def __init__(self, reporter: Reporter, total: int) -> None:
        self.applied: dict[RegistrationKey, Applied] = {}
        self.is_stopped = False
        self.progress = PublicationProgress(reporter, total, "changed")
        self._reporter = reporter
        self._is_announced = False

    def stop(self) -> None:
        self.is_stopped = True

    def emit(self, one: Applied) -> None:
        self.applied[one.change.registration.key] = one
        self.progress.show(len(self.applied))

    def wait(self) -> None:
        if self.is_stopped and not self._is_announced:
            self._is_announced = True
            self._reporter.note(
                "dkimctl: stopping when the changes that were begun are done; Ctrl-C again ends "
                "at once"
            )
        self.progress.show(len(self.applied))
