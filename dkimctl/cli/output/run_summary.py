"""What `register` shows of a plan, and says at the end of a run, with the exit code."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.results import Shown, show, summary, worst
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, ServiceError, UsageError
from dkimctl.models.registration import Outcome, Result, named
from dkimctl.render.renderer import Format
from dkimctl.text.escaping import few

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.ledger.intents import Intent

_UNFINISHED = (Outcome.PENDING, Outcome.UNKNOWN, Outcome.FAILED)


def show_plan(reporter: Reporter, results: Iterable[Result], output: OutputOptions) -> int:
    """Show what `register` would do; returns the exit code. Raises UsageError for other formats."""
    if output.is_default:
        output = output._replace(fmt=Format.TABLE)
    if output.fmt not in (Format.TABLE, Format.JSON):
        raise UsageError(
            f"a plan has no DNS records to show as {output.fmt}", hint="use --format table or json"
        )
    shown = show(results, output, reporter)
    # The service was not asked: what is unknown is so in the ledger, and a no.
    return shown.status if shown.failure else min(shown.status, ExitCode.NO)


def finish_run(
    session: Session, stopped: DkimctlError | None, shown: Shown, output_options: OutputOptions
) -> int:
    """Report why the run ended early, or what to do next; returns the exit code.

    Raises Interrupted for a run that was interrupted.
    """
    if isinstance(stopped, Interrupted):
        raise _interrupted(shown.counts)
    if stopped is None and (count := shown.counts[Outcome.PENDING]):
        stopped = ServiceError(
            f"the service kept throttling {count} {'domain' if count == 1 else 'domains'} (429)",
            hint="run the same command again later, with a lower --concurrency",
        )
    if stopped is not None:
        session.reporter.error(stopped)
        return worst([shown.status, stopped.exit_code])
    if output_options.fmt is Format.TABLE and shown.counts:
        session.reporter.note("dkimctl: next, for your DNS: `dkimctl show-dns --format zone`")
        session.reporter.note(
            "dkimctl: then check that it is published: `dkimctl check-dns --wait 30m`"
        )
    return shown.status


def nothing_sent_error(reporter: Reporter, stopped: DkimctlError, count: int) -> DkimctlError:
    """The error to end with where there are no results to show."""
    counts = Counter({Outcome.PENDING: count})
    reporter.summarize(summary(counts), counts)
    return _interrupted(counts) if isinstance(stopped, Interrupted) else stopped


def warn_of_unanswered(reporter: Reporter, intents: Sequence[Intent]) -> None:
    """Warn of requests of earlier runs that were never answered."""
    if not intents:
        return
    reporter.warn(
        f"{len(intents)} entries of earlier runs, not in this file, were never answered: "
        f"{few([named(intent) for intent in intents])}",
        hint="register a file that contains them",
    )


def warn_of_early_start(reporter: Reporter, names: Sequence[str]) -> None:
    """Warn of new keys that sign already: the clock here is slow, or they were sent too late."""
    if not names:
        return
    keys = "1 key signs" if len(names) == 1 else f"{len(names)} keys sign"
    reporter.warn(
        f"URGENT: {keys} already, before DNS has the record: {few(names)}",
        hint="publish their records at once (`dkimctl show-dns`, then `dkimctl check-dns`); if "
        "their start_date has not come yet, correct the clock of this machine",
        code="clock",
    )


def _interrupted(counts: Mapping[Outcome, int]) -> Interrupted:
    total = sum(counts.values())
    done = total - sum(counts.get(outcome, 0) for outcome in _UNFINISHED)
    command = shlex.join(["dkimctl", *sys.argv[1:]])
    return Interrupted(
        f"interrupted: {done} of {total} domains are done",
        hint=f"the answers so far are in the ledger; to go on: {command}",
    )
