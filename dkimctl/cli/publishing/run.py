"""One run of `publish`: plan, ask, apply, and prove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dkimctl.cli import terminal
from dkimctl.cli.checking import check_records
from dkimctl.cli.options.publishing import PublishOptions
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.publication import PublicationView
from dkimctl.cli.output.results import worst
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress import PublicationProgress
from dkimctl.cli.publishing.applying import apply_changes
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import interrupting
from dkimctl.errors import ExitCode, Interrupted, UsageError
from dkimctl.models.registration import Registration
from dkimctl.publishing.plan import CHANGING, PlanItem, Step, items_of, with_outcome
from dkimctl.render.renderer import PublicationFormat
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from dkimctl.publishing.changes import ConfiguredTarget
    from dkimctl.publishing.plan import PublicationPlan


def publish_records(
    session: Session,
    registrations: Sequence[Registration],
    targets: Sequence[ConfiguredTarget],
    options: PublishOptions,
    view: PublicationView,
) -> ExitCode:
    """Show the plan, make the changes if that is wanted, and show what became of them."""
    plan = plan_changes(session.reporter, registrations, targets, options)
    items = list(items_of(plan))
    if options.dry_run:
        return view.show_plan(items)
    is_table = options.fmt is PublicationFormat.TABLE
    written = view.write(items) if is_table else ExitCode.OK
    if not (options.yes or _is_confirmed(plan)):
        session.reporter.note("dkimctl: nothing was changed")
        return ExitCode.NO
    outcome = apply_changes(session.reporter, plan)
    items = [with_outcome(item, outcome.applied) for item in items]
    reported = view.report(items)
    status = ExitCode.OK
    try:
        if outcome.is_stopped:
            raise _interrupted(items)
        status, items = _proved(session, items, options, view)
    finally:
        if not is_table:  # also after Ctrl-C: what was changed
            written = view.write(items)
    view.name_next(items)
    return worst([written, reported, status])


def plan_changes(
    reporter: Reporter,
    registrations: Sequence[Registration],
    targets: Sequence[ConfiguredTarget],
    options: PublishOptions,
) -> PublicationPlan:
    """Read DNS, and plan what to change. Raises Interrupted."""
    from dkimctl.publishing.plan import make_plan

    progress = PublicationProgress(reporter, len(registrations), "read")
    with unchanged_if_interrupted(), progress:
        return make_plan(
            registrations,
            targets,
            remove=False,
            replace_foreign=options.replace,
            progress=progress.show,
        )


@contextmanager
def unchanged_if_interrupted() -> Iterator[None]:
    """Within the block, Ctrl-C and SIGTERM end the command, which has changed nothing yet."""
    try:
        with interrupting():
            yield
    except KeyboardInterrupt:
        hint = "nothing was changed; run the same command again"
        raise Interrupted(hint=hint) from None


def _is_confirmed(plan: PublicationPlan) -> bool:
    """Whether the changes are to be made; without any there is nothing to ask."""
    count = sum(len(zone.to_apply) for zone in plan.zones)
    if not count:
        return True
    question = f"Make {counted(count, 'change')} in DNS?"
    refusal = UsageError("there is no terminal to ask on", hint="add --yes")
    return terminal.confirms(question, refusal=refusal, hint="nothing was changed")


def _proved(
    session: Session, items: list[PlanItem], options: PublishOptions, view: PublicationView
) -> tuple[ExitCode, list[PlanItem]]:
    """The exit code of the check that was asked for, and the items with what it found."""
    done = [one.registration for one in items if one.is_applied or one.step is Step.KEEP]
    if options.wait is None or not done:
        return ExitCode.OK, items
    proof = check_records(
        session,
        done,
        options.wait,
        is_shown=view.is_shown and options.fmt is PublicationFormat.TABLE,
        selection=view.words,
    )
    return proof.status, [item._replace(check=proof.checks.get(item.key)) for item in items]


def _interrupted(items: Sequence[PlanItem]) -> Interrupted:
    made = sum(item.is_applied for item in items)
    total = sum(item.step in CHANGING for item in items)
    return Interrupted(
        f"interrupted: {made} of {counted(total, 'change')} made",
        hint=f"to go on: `{next_steps.same_command()}`",
    )
