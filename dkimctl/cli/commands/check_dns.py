"""`dkimctl check-dns`: whether DNS has the registered records."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import typer

from dkimctl.cli.options.checking import (
    ExpectAbsentOption,
    FormatOption,
    MaxInFlightOption,
    ResolverOption,
    SavedOption,
    ServerOption,
    WaitOption,
    WarnWithinOption,
    open_source,
    read_policy,
)
from dkimctl.cli.options.shared import OutputOption, examples, with_session
from dkimctl.cli.output.checks import CheckSink
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.results import worst_check
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.checking import CheckProgress
from dkimctl.cli.selection import (
    SelectionArgument,
    read_selection,
    registered_results,
    saved_results,
    warn_unmatched,
)
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, Interrupted, LedgerError
from dkimctl.models.registration import Registration, Result, named
from dkimctl.publication.changes import PublicationChanges, recorded_changes
from dkimctl.render.records import publishable
from dkimctl.render.renderer import CheckFormat

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "dkimctl check-dns",
        "dkimctl check-dns --wait 30m",
        "dkimctl check-dns '*.example.com' --server 192.0.2.1 --server 192.0.2.2:5353",
        "dkimctl check-dns --format json > checks.json",
        "dkimctl rotate --retired --format json | dkimctl check-dns --from - --expect-absent",
    )
)
@with_session
def check_dns(
    session: Session,
    selection: SelectionArgument = None,
    saved: SavedOption = None,
    server: ServerOption = None,
    resolver: ResolverOption = False,
    max_in_flight: MaxInFlightOption = 64,
    wait: WaitOption = None,
    expect_absent: ExpectAbsentOption = False,
    warn_within: WarnWithinOption = "2d",
    fmt: FormatOption = CheckFormat.TABLE,
    output: OutputOption = None,
) -> int:
    """Check that DNS has the registered records. No token is needed.

    Every authoritative server of each zone is asked. The exit code is 1 if a record is not
    published as registered; else 4 if DNS gave no answer for one.
    """
    from dkimctl.publication.checking.run import check_publication

    policy = read_policy(wait, warn_within, expect_absent=expect_absent)
    if output is not None:
        require_writable(output)  # before a long wait
    source = open_source(server or (), resolver, max_in_flight)
    selected = read_selection(session, selection)
    skipped = _Skipped(session.reporter)
    if saved is None:
        results, unreadable = registered_results(session, selected), ExitCode.OK
    else:
        results, unreadable = saved_results(session, saved, selected)
    registrations = skipped.filter(results)
    progress = CheckProgress(session.reporter, policy.wanted, may_draw=_may_draw(fmt, output))
    recorded = saved is None and not expect_absent
    try:
        with (
            _changes(session, recorded=recorded) as changes,
            CheckSink(fmt, output, session.reporter, wanted=policy.wanted) as sink,
        ):
            with progress:
                check_publication(
                    registrations, source, policy, sink.emit, progress=progress, changes=changes
                )
            status = sink.close()
    except KeyboardInterrupt:
        hint = "run the same command to check again"
        if recorded:
            hint = f"the changes seen are in the ledger; {hint}"
        raise Interrupted(hint=hint) from None
    return worst_check([status, skipped.status, unreadable, warn_unmatched(session, selected)])


def _may_draw(fmt: CheckFormat, output: Path | None) -> bool:
    """A table is written at the end; other formats are written to a terminal meanwhile."""
    return fmt is CheckFormat.TABLE or output is not None or not sys.stdout.isatty()


class _Skipped:
    """Leaves out, with a warning, what has no record that could be checked."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.status = ExitCode.OK

    def filter(self, results: Iterable[Result]) -> Iterator[Registration]:
        for result in results:
            if publishable(result) is not None:
                yield result.registration
            else:
                name = named(result.registration)
                text = f"{name} is not checked: {result.outcome}: {result.reason}"
                self._reporter.warn(text, code=result.outcome)
                self.status = ExitCode.NO


def _changes(session: Session, *, recorded: bool) -> AbstractContextManager[PublicationChanges]:
    def warn(error: LedgerError) -> None:
        session.reporter.warn(
            f"cannot record in the ledger which records are published: {error.message}",
            hint="`dkimctl rotate --retired` depends on it",
            code=error.code,
        )

    if not recorded:
        return nullcontext(PublicationChanges(()))
    return recorded_changes(lambda: session.open_ledger(for_writing=True), on_failure=warn)
