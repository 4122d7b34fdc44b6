"""What the `ledger` commands report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output.options import OutputOptions, default_format
from dkimctl.cli.output.results import write_results
from dkimctl.cli.output.streams import AlikeWarnings, Reporter
from dkimctl.errors import NegativeAnswer
from dkimctl.models.registration import Outcome, Result, named
from dkimctl.render.renderer import Format
from dkimctl.text.escaping import few
from dkimctl.text.grouping import without_names

if TYPE_CHECKING:
    from dkimctl.cli.options import TableOrJson
    from dkimctl.registration.saved_results import ImportPlan
    from dkimctl.rotation.retirement import RetirementStatus


def write_forgotten(
    reporter: Reporter,
    statuses: Iterable[RetirementStatus],
    fmt: TableOrJson | None,
    output: Path | None,
) -> None:
    """Write what is about to be forgotten. Raises OutputError if it does not arrive."""
    from dkimctl.rotation.retirement import as_result

    chosen = Format(fmt) if fmt else default_format(output, for_machines=Format.JSON)
    options = OutputOptions(chosen, output=output)
    write_results(map(as_result, statuses), options, reporter, must_arrive=True)


def report_import(reporter: Reporter, plan: ImportPlan) -> None:
    """Count what was imported, and warn about the rest."""
    _warn_left_out(reporter, plan.skipped)
    warnings = AlikeWarnings(reporter)
    for conflict in plan.conflicts:
        text = f"{named(conflict.registration)}: {conflict.reason}"
        kind = without_names(conflict.reason, *conflict.registration.key)
        warnings.warn(text, kind=kind, code="conflict")
    warnings.close()
    counts = {
        "imported": len(plan.new),
        "already there": plan.known,
        "in conflict": len(plan.conflicts),
        "left out": len(plan.skipped),
    }
    parts = [f"{word} {count}" for word, count in counts.items() if count]
    reporter.note(f"dkimctl: {', '.join(parts) or 'nothing to import'}")


def report_forgotten(reporter: Reporter, forgotten: int, not_retired: int) -> None:
    """Count what was forgotten, and say what to do next."""
    if not (forgotten or not_retired):
        reporter.note("dkimctl: nothing to do")
        return
    rest = f", kept {not_retired} (not retired)" if not_retired else ""
    reporter.note(f"dkimctl: forgot {forgotten}{rest}")
    reporter.note(
        "dkimctl: remove their entries from your spec files, too, or `dkimctl register` sends them "
        "again"
    )


def nothing_retired(reporter: Reporter, statuses: Sequence[RetirementStatus]) -> NegativeAnswer:
    """Warn with reasons; returns the error to end with."""
    warnings = AlikeWarnings(reporter)
    for status in statuses:
        text = f"{named(status.registration)} is not retired: {reporter.complete(status.reason)}"
        warnings.warn(text, kind="not retired", code="not_retired")
    warnings.close()
    return NegativeAnswer(
        f"none of the {len(statuses)} selected registrations is retired; nothing was forgotten",
        hint="`dkimctl rotate --retired` lists the retired ones; --force forgets the others as "
        "well, such as those of a domain that was sold",
    )


def still_in_dns(verdicts: Mapping[str, str]) -> NegativeAnswer:
    """The error for records that may still be in DNS; `verdicts` is by name of the registration."""
    names = [f"{name}: {verdict}" for name, verdict in verdicts.items()]
    return NegativeAnswer(
        f"may still be in DNS: {len(names)} ({few(names)}); nothing was forgotten",
        hint="delete the records and run `dkimctl check-dns DOMAIN`, or forget them with "
        "--still-published",
    )


def _warn_left_out(reporter: Reporter, results: Sequence[Result]) -> None:
    """One warning for each outcome that is not a registration of this account."""
    by_outcome: dict[Outcome, list[Result]] = {}
    for result in results:
        by_outcome.setdefault(result.outcome, []).append(result)
    for outcome, of_outcome in by_outcome.items():
        texts = [f"{named(result.registration)}: {result.reason}" for result in of_outcome]
        reporter.warn(f"left out, {outcome}: {len(texts)} ({few(texts)})", code=outcome)
