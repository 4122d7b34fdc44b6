"""A check of DNS as commands make it: whom to ask, what is expected, and what is recorded."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from dkimctl.addresses import parse_address
from dkimctl.cli import next_steps
from dkimctl.cli.guide import URGENT_WARNINGS
from dkimctl.cli.options import option, read_duration
from dkimctl.cli.output import LONG_TABLE, table_layout, write_chunks
from dkimctl.cli.progress import REDRAW, ProgressDisplay
from dkimctl.cli.report import Reporter, warn_alike
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import interrupting
from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.check import CheckPolicy, DelegationChecker, check_publication, delegations
from dkimctl.dns.nameserver import system_nameservers
from dkimctl.dns.queries import Source, authoritative, given, recursive
from dkimctl.dns.verdicts import Check, Looks, Urgency, Verdict, is_good, recording_looks
from dkimctl.dns.wildcards import AddFirst, find_shadowed_in_dns
from dkimctl.errors import ExitCode, Interrupted, LedgerError, OutputError, UsageError, worst_check
from dkimctl.formats.checks import CheckTable, open_checks
from dkimctl.formats.monitoring import NO_RUN, PrometheusRenderer, Run
from dkimctl.formats.renderer import CheckFormat, Renderer, render_all
from dkimctl.models import Registration, RegistrationKey, named
from dkimctl.rotation.retirement import KnownKeys, RetirementPolicy, RetirementStatus, review
from dkimctl.settings.rotation import Pool
from dkimctl.text import MAX_ALIKE, few, format_duration

MAX_IN_FLIGHT, WARN_WITHIN = 64, "2d"  # unless an option says otherwise
SERVERS_PANEL = "Servers"

ServerOption = Annotated[list[str] | None, option("--server IP[:PORT]",
    "Ask only this server; repeatable (default: every authoritative server).",
    rich_help_panel=SERVERS_PANEL)]  # fmt: skip
ResolverOption = Annotated[bool, option("--resolver",
    "Ask only the system's resolver, whose cache may be out of date.",
    rich_help_panel=SERVERS_PANEL)]  # fmt: skip
# What to do about a record that is there, and is not the one that was registered.
_REMEDIES = {
    Verdict.DIFFERS: "verifiers accept it, so there is no hurry: enter the registered value",
    Verdict.MISMATCH: "enter the registered value, unless another program signs with that key: "
    "then register another selector",
    Verdict.TRUNCATED: "enter the whole value; a panel that takes 255 characters at most needs "
    "several strings",
    Verdict.MALFORMED: "correct what is named there; the value has to be the registered one, as "
    "it is",
    Verdict.DUPLICATE: "delete all TXT records of that name but the registered one",
    Verdict.REVOKED: "enter the registered value in place of the empty key",
}


def open_source(
    servers: Sequence[str] = (), resolver: bool = False, max_in_flight: int = MAX_IN_FLIGHT
) -> Source:
    """The servers that these options name. Raises UsageError; ServiceError without a resolver."""
    if servers and resolver:
        raise UsageError("--server cannot be combined with --resolver", hint="remove one of them")
    if servers:
        return given([parse_address(text) for text in servers], max_in_flight)
    return (recursive if resolver else authoritative)(system_nameservers(), max_in_flight)


def read_policy(
    wait: str | None, warn_within: str = WARN_WITHIN, *, expect_absent: bool = False
) -> CheckPolicy:
    seconds = 0.0 if wait is None else read_duration("--wait", wait).total_seconds()
    within = read_duration("--warn-within", warn_within, may_be_zero=True)
    return CheckPolicy(seconds, within, expect_absent)


def recorded_looks(
    session: Session, counted: Container[RegistrationKey] | None = None
) -> AbstractContextManager[Looks]:
    """Looks at keys in `counted` (None: all), recorded at the end; warns if they cannot be."""
    return recording_looks(
        lambda: session.open_ledger(for_writing=True),
        on_failure=lambda error: warn_not_recorded(session, error), counted=counted,
    )  # fmt: skip


def warn_not_recorded(session: Session, error: LedgerError) -> None:
    text = f"cannot record in the ledger which records are published: {error.message}"
    hint = "`dkimctl rotate --retired` and `dkimctl ledger forget` depend on it"
    session.reporter.warn(text, hint=hint, code=error.code)


def review_now(
    session: Session, known: KnownKeys, policy: RetirementPolicy, *, restarts: bool
) -> list[RetirementStatus]:
    """Look at the successors in DNS, and record what is there; `restarts`: see `Looks`."""
    successors = {each.key: each for status in known.statuses(policy) for each in status.successors}
    sound = [each for each in successors.values() if not record_fault(with_key_len(each))]
    checks: Iterable[Check] = ()
    progress = CheckProgress(session.reporter, Verdict.PUBLISHED)
    with recorded_looks(session) as looks, progress:
        looks.restarts = restarts
        if sound:
            checks = check_publication(
                sound, open_source(), read_policy(None), progress=progress, looks=looks
            )
        by_key = {check.key: check for check in checks}
        return review(known, policy._replace(now=datetime.now(UTC)), by_key, looks)


def check_records(
    session: Session, registrations: Sequence[Registration], wait: str, *,
    is_shown: bool, selection: Sequence[str],
) -> tuple[ExitCode, Mapping[RegistrationKey, Check]]:  # fmt: skip
    """Do what `check-dns --wait` does for just these; `is_shown`: with its table on stdout."""
    reporter, policy, wanted = session.reporter, read_policy(wait), Verdict.PUBLISHED
    progress = CheckProgress(reporter, wanted)
    by_key: dict[RegistrationKey, Check] = {}
    try:
        renderer = open_renderer(None, None, reporter, wanted, NO_RUN) if is_shown else None
        with interrupting(), recorded_looks(session) as looks:
            checks = check_publication(
                registrations, open_source(), policy, progress=progress, looks=looks
            )
            kept = (by_key.setdefault(check.key, check) for check in checks)
            status = show_checks(
                kept, renderer, None, reporter, wanted=wanted, progress=progress,
                selection=selection, has_targets=True, is_written=True,
                has_timer=reporter.shows_notes and session.has_timer,
            )  # fmt: skip
    except KeyboardInterrupt:
        hint = "the changes were made; to check again: `dkimctl check-dns`"
        raise Interrupted(hint=hint) from None
    if status is not ExitCode.OK and not is_shown:
        reporter.note(f"dkimctl: for the details: {next_steps.command('check-dns', selection)}")
    return status, by_key


def warn_of_wildcards(
    reporter: Reporter, zone_of: Mapping[str, str], source: Source | None = None
) -> AddFirst:
    """Warn of names whose new records would end what a wildcard answers; what to add before."""
    if not any(zone_of.values()):
        return {}
    add_first = find_shadowed_in_dns(source or open_source(), zone_of)
    warn_alike(reporter, (
        (f"{name} will end what a wildcard answers for its domain; first add {'; '.join(lines)}",
         "records that will end what a wildcard answers", "wildcard")
        for name, lines in add_first.items() if lines
    ))  # fmt: skip
    return add_first


class CheckProgress(ProgressDisplay):
    """Shows how far the checks are: a bar, or a line for each verdict that changes later."""

    def __init__(self, reporter: Reporter, wanted: Verdict, *, may_draw: bool = True) -> None:
        super().__init__(reporter, may_draw=may_draw)
        self._wanted = wanted  # the good verdict
        self._last: dict[str, Verdict] = {}  # by FQDN, from the second round on
        self._done = 0  # in this round, and good in those before it
        self._total: int | None = None  # known from the second round on

    def checked(self, check: Check) -> None:
        self._done += 1
        before, verdict = self._last.get(check.fqdn), check.finding.verdict
        if self._total is not None and not self.draws and before is not verdict:
            self._last[check.fqdn] = verdict
            text = f"{check.fqdn}: {before} -> {verdict} ({self._good_of_all()[1]})"
            self._reporter.note(f"dkimctl: {text}")
        if self.is_due:
            of_all = "" if self._total is None else f"/{self._total}"
            self.draw(self._done, self._total, f"{self._done}{of_all} checked")

    def pause(self, seconds: float, checks: Sequence[Check]) -> None:
        """Wait until the next round; `checks` has the latest of each record."""
        self._last = {check.fqdn: check.finding.verdict for check in checks}
        self._done, good = self._good_of_all()
        if self._total is None and not self.draws:
            self._reporter.note(f"dkimctl: {good}; checking the rest again")
        self._total, until = len(checks), time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.draws:
                text = f"{good}, next check in {format_duration(left)}"
                self.draw(self._done, self._total, text)
            time.sleep(min(left, REDRAW) if self.draws else left)

    def _good_of_all(self) -> tuple[int, str]:
        good = sum(is_good(verdict, self._wanted) for verdict in self._last.values())
        word = "gone" if self._wanted is Verdict.MISSING else self._wanted
        return good, f"{good} of {len(self._last)} {word}"


def open_renderer(
    fmt: CheckFormat | None, output: Path | None, reporter: Reporter, wanted: Verdict, run: Run
) -> Renderer[Check]:
    """The renderer of checks in `fmt`; without one, a table that leaves rows out if it is long.

    `wanted` is the good verdict, `run` for monitoring.
    """
    shows_all = fmt is not None or reporter.verbose
    layout = table_layout(reporter, output)._replace(
        only_attention=reporter.quiet,
        most_rows=None if shows_all or output or not sys.stdout.isatty() else LONG_TABLE,
        most_alike=None if shows_all or output else MAX_ALIKE,
    )
    fmt = fmt or CheckFormat.TABLE
    return open_checks(fmt, wanted=wanted, layout=layout, quiet=reporter.quiet, run=run)


def show_delegations(
    pools: Mapping[str, Pool], reporter: Reporter, selection: Sequence[str], source: Source,
    fmt: CheckFormat | None, output: Path | None, *, may_draw: bool,
) -> ExitCode:  # fmt: skip
    """Show whether DNS has what the pools, by signing domain, need, and what to do next."""
    wanted = (each for domain, pool in pools.items() for each in delegations(pool, domain))
    counts, wrong = Counter[Verdict](), set[str]()
    progress = CheckProgress(reporter, Verdict.PUBLISHED, may_draw=may_draw)

    def finish(check: Check) -> Check:
        progress.checked(check)
        counts[check.finding.verdict] += 1
        if check.finding.verdict not in (Verdict.PUBLISHED, Verdict.NO_ANSWER):
            wrong.add(check.sign_domain)
        return check

    renderer = open_renderer(fmt, output, reporter, Verdict.PUBLISHED, NO_RUN)
    with progress:
        checks = DelegationChecker(source, finish=finish).check(wanted)
        if isinstance(renderer, CheckTable):  # the verdict says where an alias leads
            checks = (check._replace(alias="") for check in checks)
        write_chunks(render_all(renderer, checks), output)
    parts = [f"{verdict} {counts[verdict]}" for verdict in Verdict if counts[verdict]]
    reporter.summarize(", ".join(parts) or "nothing to check", counts)
    if wrong:
        words = next_steps.select_domains(sorted(wrong), selection)
        sheet = next_steps.command("handoff", words, "--delegate")
        again = next_steps.command("check-dns", words, "--delegation")
        reporter.note(f"dkimctl: what the owner of the DNS has to enter: {sheet}, then {again}")
        return ExitCode.NO
    return ExitCode.SERVICE if counts[Verdict.NO_ANSWER] else ExitCode.OK


def show_checks(
    checks: Iterable[Check], renderer: Renderer[Check] | None, output: Path | None,
    reporter: Reporter, *, wanted: Verdict, progress: ProgressDisplay, selection: Sequence[str],
    has_targets: bool, has_timer: bool, is_written: bool = False,
) -> ExitCode:  # fmt: skip
    """Show checks as they come, then the summary and the next step; returns the exit code.

    Without a renderer, only the latter. `wanted` is the good verdict, `selection` the words that
    select what is checked. `publish` can publish what is missing if there are targets, or has.
    """
    counts, urgent = Counter[Verdict](), dict[Urgency, list[str]]()

    def counted() -> Iterator[Check]:
        with progress:
            for check in checks:
                counts[check.finding.verdict] += 1
                if check.urgency:
                    urgent.setdefault(check.urgency, []).append(named(check))
                yield check

    failure = None
    if renderer is None:
        deque(counted(), maxlen=0)
    else:
        # node_exporter, which reads the metrics, is another user; no secret is among them.
        mode = 0o644 if isinstance(renderer, PrometheusRenderer) else None
        try:
            write_chunks(render_all(renderer, counted()), output, mode=mode)
        except OutputError as error:
            failure = error
    gone = {Verdict.PUBLISHED: "still in DNS", Verdict.MISSING: "gone"}
    words = gone if wanted is Verdict.MISSING else {}
    parts = [f"{words.get(item, item)} {counts[item]}" for item in Verdict if counts[item]]
    reporter.summarize(", ".join(parts) or "nothing to check", counts)
    wait = next_steps.wait_for(selection)
    step = f"{next_steps.publish(selection, by_target=has_targets)}, then {wait}"
    transfer = "check that the servers of the zone get them from it"
    written = f"the DNS target has the records: {transfer}, then {wait}"
    hint = written if is_written else f"publish the records: {step}"
    warn_of_urgent(reporter, urgent, selection, hint)
    wrong = [verdict for verdict in _REMEDIES if counts[verdict] and not words]
    for verdict in wrong:
        reporter.note(f"dkimctl: {verdict}: {_REMEDIES[verdict]}")
    what = ["missing"] * bool(counts[Verdict.MISSING]) + ["wrong"] * bool(wrong)
    if what and is_written and not urgent:
        reporter.note(f"dkimctl: {written}")
    elif what and not urgent and not words:
        reporter.note(f"dkimctl: to publish what is {' or '.join(what)}: {step}")
        if not has_targets:
            reporter.note(f"dkimctl: or in a web panel: {next_steps.enter(selection)}")
    if counts and counts[Verdict.PUBLISHED] == counts.total() and not has_timer:
        by_hand = f"every six months or so: {next_steps.command('rotate', selection)}"
        step = "automatically: `dkimctl timer`" if has_targets else by_hand
        reporter.note(f"dkimctl: to replace the keys {step}")
    bad = [verdict for verdict in counts if not is_good(verdict, wanted)]
    codes = [ExitCode.SERVICE if each is Verdict.NO_ANSWER else ExitCode.NO for each in bad]
    if failure is not None:
        reporter.error(failure)
        codes.append(failure.exit_code)
    return worst_check(codes)


def warn_of_urgent(
    reporter: Reporter, names_of: Mapping[Urgency, Sequence[str]], selection: Sequence[str],
    hint: str,
) -> None:  # fmt: skip
    """Warn about the keys of each urgency, by name; `hint` says what to do."""
    wait = f"wait until all servers have it: {next_steps.wait_for(selection)}"
    for urgency, text in URGENT_WARNINGS.items():
        if names := names_of.get(urgency):
            to_do = wait if urgency is Urgency.PARTLY else hint
            text = text if urgency is Urgency.SOON else f"URGENT: {text}"  # noqa: PLW2901
            reporter.warn(f"{text}: {len(names)} ({few(names)})", hint=to_do, code=urgency)
