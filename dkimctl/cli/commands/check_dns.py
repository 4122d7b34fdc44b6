"""`dkimctl check-dns`: whether DNS has what was registered."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dkimctl.cli.options import examples, with_session
from dkimctl.cli.output.checks import show_checks
from dkimctl.cli.output.destination import require_place
from dkimctl.cli.output.results import worst
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.checking import CheckProgress
from dkimctl.cli.selection import (
    SelectionArgument,
    named,
    read_selection,
    registered,
    tell_unmatched,
)
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, Interrupted, LedgerError, UsageError
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import Registration, Result
from dkimctl.publication.sightings import PublicationChanges
from dkimctl.publication.verdicts import Check, Verdict, urgency
from dkimctl.render.records import publishable
from dkimctl.render.renderer import CheckFormat
from dkimctl.text.durations import parse_duration

if TYPE_CHECKING:
    from dkimctl.publication.checking.sources import Source

app = typer.Typer(add_completion=False)

_WHOM = "Whom to ask"


class _Terms(NamedTuple):
    """What the options say; `wait` in seconds."""

    wait: float
    warn_within: timedelta
    expect_absent: bool

    @property
    def wanted(self) -> Verdict:
        return Verdict.MISSING if self.expect_absent else Verdict.PUBLISHED


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
    saved: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Check what --format json wrote, or a response of the service, in place of the "
            "ledger; `-` is standard input.",
        ),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="IP[:PORT]",
            help="Ask this server, once for each; by default every authoritative one.",
            rich_help_panel=_WHOM,
        ),
    ] = None,
    resolver: Annotated[
        bool,
        typer.Option(
            "--resolver",
            help="Ask only the resolver of this machine, which may remember what was.",
            rich_help_panel=_WHOM,
        ),
    ] = False,
    max_in_flight: Annotated[
        int,
        typer.Option(
            "--max-in-flight",
            metavar="N",
            min=1,
            max=1000,
            help="Questions to one server at the same time.",
            rich_help_panel=_WHOM,
        ),
    ] = 64,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="Look again until all is as it should be, for so long at most, such as 30m.",
        ),
    ] = None,
    expect_absent: Annotated[
        bool, typer.Option("--expect-absent", help="The records are to be gone from DNS.")
    ] = False,
    warn_within: Annotated[
        str,
        typer.Option(
            "--warn-within",
            metavar="TIME",
            help="Warn of what is to sign so soon, and is not published.",
        ),
    ] = "2d",
    fmt: Annotated[
        CheckFormat,
        typer.Option("--format", metavar="FORMAT", help=f"{', '.join(CheckFormat)}."),
    ] = CheckFormat.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write there, whole or not at all."),
    ] = None,
) -> int:
    """Ask DNS whether what is published is what was registered; no token is needed.

    Every authoritative server of each zone is asked. The exit code is 1 where a record is not
    published as registered, and 4 where DNS did not tell.
    """
    terms = _Terms(
        0.0 if wait is None else _seconds("--wait", wait),
        timedelta(seconds=_seconds("--warn-within", warn_within, may_be_zero=True)),
        expect_absent,
    )
    if output is not None:
        require_place(output)  # before a long wait
    source = _source(server or (), resolver, max_in_flight)
    chosen = read_selection(session, selection)
    unchecked = _Unchecked(session.reporter)
    registrations = unchecked.left_out(_results(session, saved, chosen, unchecked))
    # Stdout has the table when all is done; other formats are written meanwhile.
    progress = CheckProgress(
        session.reporter,
        terms.wanted,
        may_draw=fmt is CheckFormat.TABLE or output is not None or not sys.stdout.isatty(),
    )
    try:
        with _sightings(session, keeps=saved is None and not expect_absent) as sightings:
            checks = _checks(registrations, source, terms, progress, sightings)
            status = show_checks(checks, fmt, output, session.reporter, wanted=terms.wanted)
    except KeyboardInterrupt:
        raise Interrupted(hint="what was seen is kept; the same command looks again") from None
    return worst([status, unchecked.status, tell_unmatched(session, chosen)])


def _source(servers: Sequence[str], resolver: bool, max_in_flight: int) -> Source:
    from dkimctl.publication.checking.sources import authoritative, given, recursive
    from dkimctl.resolver.addresses import parse_address, system_nameservers

    if servers and resolver:
        raise UsageError(
            "--server and --resolver do not go together", hint="leave one of the two out"
        )
    if servers:
        return given([parse_address(text) for text in servers], max_in_flight)
    if resolver:
        return recursive(system_nameservers(), max_in_flight)
    return authoritative(system_nameservers(), max_in_flight)


def _results(
    session: Session, saved: str | None, chosen: Selection, unchecked: _Unchecked
) -> Iterator[Result]:
    if saved is None:
        return registered(session, chosen)
    from dkimctl.registration.saved_results import judged, read_saved

    found = read_saved(saved)
    for fault in found.faults:
        unchecked.tell(f"{saved}: {fault}", "unreadable")
    return judged(chosen.pick(found.registrations))


class _Unchecked:
    """Tells of what is not checked: it has no record that could be published."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.status = ExitCode.OK

    def left_out(self, results: Iterable[Result]) -> Iterator[Registration]:
        for result in results:
            if publishable(result) is not None:
                yield result.registration
            else:
                name = named(result.registration)
                text = f"{name} is not checked: {result.outcome}: {result.reason}"
                self.tell(text, result.outcome)

    def tell(self, text: str, code: str) -> None:
        self.status = ExitCode.NO
        self._reporter.warn(text, code=code)


def _checks(
    registrations: Iterable[Registration],
    source: Source,
    terms: _Terms,
    progress: CheckProgress,
    sightings: PublicationChanges,
) -> Iterator[Check]:
    from dkimctl.publication.checking.checker import Checker
    from dkimctl.publication.checking.rounds import watch

    def done(check: Check) -> None:
        progress.checked(check)
        sightings.see(check)

    with progress, Checker(source, expect_absent=terms.expect_absent, done=done) as checker:
        checks: Iterable[Check] = ()
        if terms.wait:
            checks = watch(
                checker.check_again,
                list(registrations),
                seconds=terms.wait,
                is_good=lambda check: check.finding.verdict is terms.wanted,
                rest=progress.pause,
                clock=time.monotonic,
            )
        else:
            checks = checker.check(registrations)
        now = datetime.now(UTC)
        for check in checks:
            # Of what is to be gone, nothing is urgent.
            how_urgent = not terms.expect_absent and urgency(check, now, terms.warn_within)
            yield check._replace(urgency=how_urgent) if how_urgent else check


@contextmanager
def _sightings(session: Session, *, keeps: bool) -> Iterator[PublicationChanges]:
    """What is seen; in the end, even an early one, the ledger keeps it."""
    if not keeps:
        yield PublicationChanges(())
        return
    with session.open_ledger(for_writing=False) as ledger:
        sightings = PublicationChanges(ledger.publications())
    try:
        yield sightings
    finally:
        if sightings.published or sightings.gone:
            _keep(session, sightings)


def _keep(session: Session, sightings: PublicationChanges) -> None:
    try:
        with session.open_ledger(for_writing=True) as ledger:
            ledger.note_publications(sightings.published, sightings.gone)
    except LedgerError as error:
        session.reporter.warn(
            f"the ledger does not keep that they are published: {error.message}",
            hint="`dkimctl rotate --retired` goes by it",
            code=error.code,
        )


def _seconds(option: str, text: str, *, may_be_zero: bool = False) -> float:
    try:
        return parse_duration(text, may_be_zero=may_be_zero)
    except UsageError as error:
        raise UsageError(f"in {option}: {error.message}", hint=error.hint) from None
