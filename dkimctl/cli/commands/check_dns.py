"""`dkimctl check-dns`: whether DNS has the registered records."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import typer

from dkimctl.cli.looks import keys_to_record, recorded_looks, retired_keys
from dkimctl.cli.options.checking import (
    MAX_IN_FLIGHT,
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
from dkimctl.errors import ExitCode, Interrupted
from dkimctl.models.registration import Outcome, Registration, RegistrationKey, Result, named
from dkimctl.publication.looks import Looks
from dkimctl.render.records import sound_record
from dkimctl.render.renderer import CheckFormat

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "dkimctl check-dns",
        "dkimctl check-dns --wait 30m",
        "dkimctl check-dns '*.example.com' --server 192.0.2.1 --server 192.0.2.2:5353",
        "dkimctl check-dns --format json > checks.json",
        "dkimctl check-dns --from retired.json --expect-absent",
    )
)
@with_session
def check_dns(
    session: Session,
    selection: SelectionArgument = None,
    saved: SavedOption = None,
    server: ServerOption = None,
    resolver: ResolverOption = False,
    max_in_flight: MaxInFlightOption = MAX_IN_FLIGHT,
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
    checkable = _Checkable(session.reporter)
    counted: Container[RegistrationKey] | None = None  # all
    if saved is None:
        registrations: Iterable[Registration]
        registrations = checkable.filter(registered_results(session, selected))
        unreadable, retired = ExitCode.OK, retired_keys(session)
    else:
        results, unreadable = saved_results(session, saved, selected)
        registrations, retired = [*checkable.filter(results)], checkable.retired
        counted = keys_to_record(session, registrations)
    if source.is_given:  # what other servers have is not known
        counted = ()
    progress = CheckProgress(session.reporter, policy.wanted, may_draw=_may_draw(fmt, output))
    looks = Looks(())
    try:
        with (
            recorded_looks(session, counted) as looks,
            CheckSink(fmt, output, session.reporter, wanted=policy.wanted) as sink,
        ):
            with progress:
                check_publication(
                    registrations, source, policy, sink.emit,
                    progress=progress, looks=looks, retired=retired,
                )  # fmt: skip
            status = sink.close()
    except KeyboardInterrupt:
        hint = "run the same command to check again"
        if looks.latest:
            hint = f"what was seen is in the ledger; {hint}"
        raise Interrupted(hint=hint) from None
    return worst_check([status, checkable.status, unreadable, warn_unmatched(session, selected)])


def _may_draw(fmt: CheckFormat, output: Path | None) -> bool:
    """A table is written at the end; other formats are written to a terminal meanwhile."""
    return fmt is CheckFormat.TABLE or output is not None or not sys.stdout.isatty()


class _Checkable:
    """Leaves out, with a warning, what has no record that could be checked.

    `retired` gets the keys that are so in a saved result, each with the reason.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.status = ExitCode.OK
        self.retired: dict[RegistrationKey, str] = {}

    def filter(self, results: Iterable[Result]) -> Iterator[Registration]:
        for result in results:
            if sound_record(result) is None:
                name = named(result.registration)
                text = f"{name} is not checked: {result.outcome}: {result.reason}"
                self._reporter.warn(text, code=result.outcome)
                self.status = ExitCode.NO
                continue
            if result.outcome is Outcome.RETIRED:
                self.retired[result.registration.key] = result.reason
            yield result.registration
