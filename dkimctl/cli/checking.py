"""A check of DNS as commands make it: whom to ask, what is expected, and what is recorded."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

import typer

from dkimctl.cli import next_steps
from dkimctl.cli.options import read_duration
from dkimctl.cli.output import TextWriter, open_writer, table_layout
from dkimctl.cli.progress import REDRAW, ProgressDisplay
from dkimctl.cli.report import Reporter
from dkimctl.cli.results import LONG_TABLE
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import ending_like_ctrl_c
from dkimctl.cli.urgent import warn_of_urgent
from dkimctl.dns.verdicts import Check, Looks, Urgency, Verdict, is_good, recording_looks
from dkimctl.errors import ExitCode, Interrupted, LedgerError, OutputError, UsageError, worst_check
from dkimctl.formats.checks import open_checks
from dkimctl.formats.monitoring import NO_RUN, Run
from dkimctl.formats.renderer import CheckFormat, Renderer
from dkimctl.models import Registration, RegistrationKey, named
from dkimctl.text import MAX_ALIKE, format_duration

if TYPE_CHECKING:
    from dkimctl.dns.check import CheckPolicy
    from dkimctl.dns.queries import Source
    from dkimctl.rotation.retirement import KnownKeys, RetirementPolicy, Review

# Unless an option says otherwise.
MAX_IN_FLIGHT = 64
WARN_WITHIN = "2d"
SERVERS_PANEL = "Servers"

ServerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="IP[:PORT]",
        help="Ask only this server; repeatable (default: every authoritative server).",
        rich_help_panel=SERVERS_PANEL,
    ),
]
ResolverOption = Annotated[
    bool,
    typer.Option(
        "--resolver",
        help="Ask only the system's resolver, whose cache may be out of date.",
        rich_help_panel=SERVERS_PANEL,
    ),
]
# node_exporter, which reads the metrics, is another user; there is no secret among them.
_MODES = {CheckFormat.PROMETHEUS: 0o644}
# How the summary calls verdicts where the records should be gone.
_WORDS_OF_ABSENCE = {Verdict.PUBLISHED: "still in DNS", Verdict.MISSING: "gone"}


def open_source(
    servers: Sequence[str] = (), resolver: bool = False, max_in_flight: int = MAX_IN_FLIGHT
) -> Source:
    """The servers that these options name. Raises UsageError; ServiceError without a resolver."""
    from dkimctl.addresses import parse_address
    from dkimctl.dns.nameserver import system_nameservers
    from dkimctl.dns.queries import authoritative, given, recursive

    if servers and resolver:
        raise UsageError("--server cannot be combined with --resolver", hint="remove one of them")
    if servers:
        return given([parse_address(text) for text in servers], max_in_flight)
    if resolver:
        return recursive(system_nameservers(), max_in_flight)
    return authoritative(system_nameservers(), max_in_flight)


def read_policy(wait: str | None, warn_within: str, *, expect_absent: bool) -> CheckPolicy:
    """What these options ask for. Raises UsageError."""
    from dkimctl.dns.check import CheckPolicy

    return CheckPolicy(
        0.0 if wait is None else read_duration("--wait", wait).total_seconds(),
        read_duration("--warn-within", warn_within, may_be_zero=True),
        expect_absent,
    )


def recorded_looks(
    session: Session, counted: Container[RegistrationKey] | None = None
) -> AbstractContextManager[Looks]:
    """Looks at keys in `counted` (None: all), recorded at the end; warns if they cannot be."""
    return recording_looks(
        lambda: session.open_ledger(for_writing=True),
        on_failure=lambda error: warn_not_recorded(session, error),
        counted=counted,
    )


def warn_not_recorded(session: Session, error: LedgerError) -> None:
    session.reporter.warn(
        f"cannot record in the ledger which records are published: {error.message}",
        hint="`dkimctl rotate --retired` and `dkimctl ledger forget` depend on it",
        code=error.code,
    )


def review_now(session: Session, known: KnownKeys, policy: RetirementPolicy) -> Review:
    """Look at the successors in DNS, and record what is there."""
    from dkimctl.rotation.retirement import review_with_look

    progress = CheckProgress(session.reporter, Verdict.PUBLISHED)
    with recorded_looks(session) as looks, progress:
        return review_with_look(
            known,
            policy,
            open_source,
            progress=progress,
            looks=looks,
            clock=lambda: datetime.now(UTC),
        )


class Proof(NamedTuple):
    """What DNS has after a change, and the exit code of `check-dns`."""

    status: ExitCode
    checks: Mapping[RegistrationKey, Check]


def check_records(
    session: Session,
    registrations: Sequence[Registration],
    wait: str,
    *,
    is_shown: bool,
    selection: Sequence[str],
) -> Proof:
    """Do what `check-dns --wait` does for just these; `is_shown`: with its table on stdout."""
    from dkimctl.dns.check import check_publication

    policy = read_policy(wait, WARN_WITHIN, expect_absent=False)
    progress = CheckProgress(session.reporter, policy.wanted)
    checks: dict[RegistrationKey, Check] = {}

    def emit(check: Check) -> None:
        checks[check.key] = check
        sink.emit(check)

    sink = CheckSink(
        None, None, session.reporter, wanted=policy.wanted, selection=selection,
        is_shown=is_shown, has_targets=True, is_written=True,
    )  # fmt: skip
    try:
        with ending_like_ctrl_c(), recorded_looks(session) as looks, sink:
            with progress:
                check_publication(
                    registrations, open_source(), policy, emit, progress=progress, looks=looks
                )
            status = sink.close()
    except KeyboardInterrupt:
        hint = "the changes were made; to check again: `dkimctl check-dns`"
        raise Interrupted(hint=hint) from None
    if status is not ExitCode.OK and not is_shown:
        session.reporter.note(
            f"dkimctl: for the details: {next_steps.command('check-dns', selection)}"
        )
    return Proof(status, checks)


class CheckProgress(ProgressDisplay):
    """Shows how far the checks are. `wanted` is the good verdict.

    Where no bar can be drawn, a line is written for each verdict that a later round changes.
    """

    def __init__(self, reporter: Reporter, wanted: Verdict, *, may_draw: bool = True) -> None:
        super().__init__(reporter, may_draw=may_draw)
        self._wanted = wanted
        self._last: dict[str, Verdict] = {}  # by FQDN, from the second round on
        self._done = 0  # in this round, and good in those before it
        self._total: int | None = None  # known from the second round on

    def checked(self, check: Check) -> None:
        """A check is done."""
        self._done += 1
        before, verdict = self._last.get(check.fqdn), check.finding.verdict
        if self._total is not None and not self.draws and before is not verdict:
            self._last[check.fqdn] = verdict
            text = f"{check.fqdn}: {before} -> {verdict} ({self._good_of_all()})"
            self._reporter.note(f"dkimctl: {text}")
        if self.is_due:
            of_all = "" if self._total is None else f"/{self._total}"
            self.draw(self._done, self._total, f"{self._done}{of_all} checked")

    def pause(self, seconds: float, checks: Sequence[Check]) -> None:
        """Wait until the next round; `checks` has the latest of each record."""
        self._last = {check.fqdn: check.finding.verdict for check in checks}
        good = self._good_of_all()
        if self._total is None and not self.draws:
            self._reporter.note(f"dkimctl: {good}; checking the rest again")
        self._done, self._total = self._count_good(), len(checks)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.draws:
                text = f"{good}, next check in {format_duration(left)}"
                self.draw(self._done, self._total, text)
            time.sleep(min(left, REDRAW) if self.draws else left)

    def _good_of_all(self) -> str:
        word = "gone" if self._wanted is Verdict.MISSING else str(self._wanted)
        return f"{self._count_good()} of {len(self._last)} {word}"

    def _count_good(self) -> int:
        return sum(is_good(verdict, self._wanted) for verdict in self._last.values())


class CheckSink:
    """Shows checks, emitted one by one, and counts them.

    A table is written by `close`, the other formats meanwhile. Without a format it is a table that
    leaves rows out where there are many, unless --verbose is given. Leaving the block with an
    error keeps a file as it was.
    """

    def __init__(
        self,
        fmt: CheckFormat | None,
        output: Path | None,
        reporter: Reporter,
        *,
        wanted: Verdict,  # the good verdict
        selection: Sequence[str] = (),  # the words that select what is checked
        is_shown: bool = True,  # on stdout or in a file
        has_targets: bool = False,  # `publish` can publish what is missing
        is_written: bool = False,  # it has
        run: Run = NO_RUN,  # for the formats of monitoring
    ) -> None:
        self._fmt = fmt or CheckFormat.TABLE
        self._shows_all = fmt is not None or reporter.verbose
        self._output = output
        self._reporter = reporter
        self._wanted = wanted
        self._selection = selection
        self._counts: Counter[Verdict] = Counter()
        self._urgent: dict[Urgency, list[str]] = {}
        self._rows: list[Check] = []  # of a table; their number decides which are shown
        self._run = run
        self._writer = open_writer(output, mode=_MODES.get(self._fmt)) if is_shown else None
        self._has_targets = has_targets
        self._is_written = is_written
        self._renderer: Renderer[Check] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._writer is not None:
            self._writer.abort()

    def emit(self, check: Check) -> None:
        self._counts[check.finding.verdict] += 1
        if check.urgency:
            self._urgent.setdefault(check.urgency, []).append(named(check))
        if self._fmt is CheckFormat.TABLE:
            self._rows.append(check)
        elif self._writer is not None:
            self._writer.write(self._opened(self._writer).add(check))

    def close(self) -> ExitCode:
        """Write the rest and the summary."""
        codes = [
            ExitCode.OK if is_good(verdict, self._wanted)
            else ExitCode.SERVICE if verdict is Verdict.NO_ANSWER
            else ExitCode.NO
            for verdict in self._counts
        ]  # fmt: skip
        failure = None
        if self._writer is not None:
            try:
                renderer = self._opened(self._writer)
                for text in itertools.chain(map(renderer.add, self._rows), renderer.end()):
                    self._writer.write(text)
                self._writer.close()
            except OutputError as error:
                failure = error
                codes.append(error.exit_code)
        self._report()
        if failure is not None:
            self._reporter.error(failure)
        return worst_check(codes)

    def exit_status(self, status: ExitCode) -> int:
        """The exit status of a command whose exit code is `status`; plugins have their own."""
        from dkimctl.formats.monitoring import NagiosRenderer, NagiosState

        if not isinstance(self._renderer, NagiosRenderer):
            return status
        return self._renderer.state or (NagiosState.UNKNOWN if status else NagiosState.OK)

    def _opened(self, writer: TextWriter) -> Renderer[Check]:
        """The renderer, opened no sooner than the number of rows is known."""
        if self._renderer is None:
            quiet = self._reporter.quiet
            is_on_terminal = self._output is None and sys.stdout.isatty()
            is_cut = is_on_terminal and not self._shows_all and len(self._rows) > LONG_TABLE
            layout = table_layout(self._reporter, self._output)._replace(
                only_attention=is_cut or quiet,
                most_alike=None if self._shows_all or self._output is not None else MAX_ALIKE,
            )
            self._renderer = open_checks(
                self._fmt, wanted=self._wanted, layout=layout, quiet=quiet, run=self._run
            )
            writer.write(self._renderer.begin())
        return self._renderer

    def _report(self) -> None:
        counts = self._counts
        words = _WORDS_OF_ABSENCE if self._wanted is Verdict.MISSING else {}
        parts = [
            f"{words.get(verdict, verdict)} {counts[verdict]}"
            for verdict in Verdict
            if counts[verdict]
        ]
        self._reporter.summarize(", ".join(parts) or "nothing to check", counts)
        warn_of_urgent(
            self._reporter, self._urgent, self._selection,
            by_target=self._has_targets, is_written=self._is_written,
        )  # fmt: skip
        if counts[Verdict.MISSING] and not words and not self._urgent:
            publish = next_steps.publish(self._selection, by_target=self._has_targets)
            wait = next_steps.wait_for(self._selection)
            step = f"to publish what is missing: {publish}, then {wait}"
            if self._is_written:
                step = next_steps.wait_for_transfers(self._selection)
            self._reporter.note(f"dkimctl: {step}")
        if counts and counts[Verdict.PUBLISHED] == counts.total():
            rotate = next_steps.command("rotate", self._selection)
            if self._has_targets:
                rotate = "`dkimctl rotate run` once a day, from a timer"
            self._reporter.note(f"dkimctl: to replace the keys, every six months or so: {rotate}")
