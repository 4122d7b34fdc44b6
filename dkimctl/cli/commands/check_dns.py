"""`dkimctl check-dns`: whether DNS has the registered records."""

import sys
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli import checking, selected
from dkimctl.cli.checking import ResolverOption, ServerOption
from dkimctl.cli.notify import CheckNotices, require_notify, send_test_notice
from dkimctl.cli.options import SAVED_RESULT, App, OutputOption, option
from dkimctl.cli.output import read_format
from dkimctl.cli.session import Session, open_session
from dkimctl.cli.terminal import interrupting
from dkimctl.dns.check import check_publication
from dkimctl.dns.verdicts import Check, Looks, Verdict, same_records
from dkimctl.errors import Interrupted, LedgerError, UsageError, worst_check
from dkimctl.formats.monitoring import NagiosRenderer, NagiosState, Run
from dkimctl.formats.renderer import CheckFormat, sound_record
from dkimctl.models import Outcome, RegistrationKey
from dkimctl.names import Selection
from dkimctl.rotation.life import read_keys
from dkimctl.rotation.successors import FEW_LEFT

_MAX_MISSING = 200  # records whose wildcards are looked up; `publish` looks up all

app = App()


@app.command(
    "dkimctl check-dns",
    "dkimctl check-dns --wait 30m",
    "dkimctl check-dns '*.example.com' --server 192.0.2.1 --server 192.0.2.2:5353",
    "dkimctl check-dns --from retired.json --expect-absent",
    "dkimctl check-dns --delegation shop.example",
    "dkimctl check-dns --format nagios",
    "dkimctl check-dns --output dkim.prom",
    "dkimctl check-dns --test-notice",
)
def check_dns(
    ctx: typer.Context,
    selection: selected.SelectionArgument = None,
    saved: Annotated[str | None, option("--from FILE",
        f"Check the records of a file, not the ledger: {SAVED_RESULT}")] = None,
    server: ServerOption = None,
    resolver: ResolverOption = False,
    max_in_flight: Annotated[int, option("--max-in-flight N",
        "Parallel queries to one server, 1 to 1000.", min=1, max=1000,
        rich_help_panel=checking.SERVERS_PANEL)] = checking.MAX_IN_FLIGHT,
    wait: Annotated[str | None, option("--wait TIME",
        "Check again until all is as expected, for at most this long, such as 30m.")] = None,
    expect_absent: Annotated[bool, option("--expect-absent",
        "Expect the records to be gone from DNS.")] = False,
    warn_within: Annotated[str, option("--warn-within TIME", "Warn about unpublished records "
        "whose signing starts within this time.")] = checking.WARN_WITHIN,
    delegation: Annotated[bool, option("--delegation",
        "Check the CNAME or NS records of pools.")] = False,
    notify: Annotated[bool, option("--notify",
        "Send a notice if problems began or ended.")] = False,
    test_notice: Annotated[bool, option("--test-notice", "Only send a notice, as a test.")] = False,
    fmt: Annotated[CheckFormat | None, option("--format -f FORMAT",
        f"{', '.join(CheckFormat)} (default: table).")] = None,
    output: OutputOption = None,
) -> int:  # fmt: skip
    """Check that DNS has the registered records. No token is needed.

    Every authoritative server of each zone is asked. The exit code is 1 if a record is not
    published as registered, otherwise 4 if DNS gave no answer for one. With --format nagios, it is
    that of a monitoring plugin.
    """
    session = open_session(ctx)
    began = time.time()
    fmt = read_format(CheckFormat, fmt, output)
    policy = checking.read_policy(wait, warn_within, expect_absent=expect_absent)
    if delegation:
        for_monitors = fmt in (CheckFormat.PROMETHEUS, CheckFormat.NAGIOS)
        others = {"--from": saved, "--wait": wait, "--expect-absent": expect_absent,
                  "--notify": notify, "--test-notice": test_notice,
                  "--warn-within": warn_within != checking.WARN_WITHIN,
                  f"--format {fmt}": for_monitors}  # fmt: skip
        _refuse("--delegation", others, "remove one of the two")
    if test_notice:
        if any((selection, saved, notify, expect_absent, wait)):
            hint = "leave out the selection and the other options"
            raise UsageError("--test-notice checks nothing", hint=hint)
        return send_test_notice(session)
    if notify:
        others = {"--format nagios": fmt is CheckFormat.NAGIOS, "--from": saved is not None,
                  "--expect-absent": expect_absent}  # fmt: skip
        hint = "remove one of the two: notices are about the keys in the ledger, and "
        _refuse("--notify", others, f"{hint}a monitor sends its own")
        require_notify(session)
    source = checking.open_source(server or (), resolver, max_in_flight)
    # A table is written at the end; other formats are written to a terminal meanwhile.
    may_draw = fmt in (None, CheckFormat.TABLE) or output is not None or not sys.stdout.isatty()
    if delegation:
        words = selection or ()
        pools = selected.select_pools(session, words)
        return checking.show_delegations(
            pools, session.reporter, words, source, fmt, output, may_draw=may_draw
        )
    picked = selected.read_selection(session, selection)
    # What other servers have is not known if some are given.
    checkable = _select(session, picked, saved, recorded=not source.is_given)
    is_prometheus = fmt is CheckFormat.PROMETHEUS
    run = Run(
        session.profile.name, began, lambda: bool(checkable.status or picked.unmatched()),
        _few_left(session, picked) if is_prometheus else {},
        lambda domain: session.config.rotation.of(domain).owner,
        session.open_ledger(for_writing=False).mail() if is_prometheus and saved is None else {},
    )  # fmt: skip
    progress = checking.CheckProgress(session.reporter, policy.wanted, may_draw=may_draw)
    renderer = checking.open_renderer(fmt, output, session.reporter, policy.wanted, run)
    looks = Looks(())
    try:
        with interrupting(), checking.recorded_looks(session, checkable.counted) as looks:
            missing: dict[str, str] = {}  # with their zones
            notices = CheckNotices(session, source, policy, looks, checkable.retired)

            def checks() -> Iterator[Check]:
                for check in check_publication(
                    checkable.registrations, source, policy,
                    progress=progress, looks=looks, retired=checkable.retired,
                ):  # fmt: skip
                    if notify:
                        notices.add(check)
                    is_missing = check.finding.verdict is Verdict.MISSING and not expect_absent
                    if is_missing and len(missing) < _MAX_MISSING:
                        missing[check.fqdn] = check.zone
                    yield check

            status = checking.show_checks(
                checks(), renderer, output, session.reporter, wanted=policy.wanted,
                progress=progress, selection=selection or (), has_targets=session.has_dns_targets,
                has_timer=session.reporter.shows_notes and session.has_timer,
            )  # fmt: skip
            _note_automation(session, missing)
            if source.is_given and saved is None:
                session.reporter.note(
                    "dkimctl: not recorded, since --server or --resolver was given: `dkimctl list` "
                    "and `dkimctl rotate` go by checks without them"
                )
            checking.warn_of_wildcards(session.reporter, missing, source)
            if notify:
                status = worst_check([status, notices.send()])
    except KeyboardInterrupt:
        hint = "run the same command to check again"
        if looks.latest:
            hint = f"the results so far are in the ledger; {hint}"
        raise Interrupted(hint=hint) from None
    status = worst_check([status, checkable.status, selected.warn_unmatched(session, picked)])
    if isinstance(renderer, NagiosRenderer):  # plugins have exit codes of their own
        return renderer.state or (NagiosState.UNKNOWN if status else NagiosState.OK)
    return status


def _refuse(option: str, others: Mapping[str, object], hint: str) -> None:
    for name, is_given in others.items():
        if is_given:
            raise UsageError(f"{option} cannot be combined with {name}", hint=hint)


def _few_left(session: Session, picked: Selection) -> Mapping[str, int]:
    """How many selectors are left in pools that have few, by signing domain."""
    if not session.config.delegation:
        return {}
    ledger, now = session.open_ledger(for_writing=False), datetime.now(UTC)
    keys = read_keys(ledger, picked, session.config.rotation, now)
    lefts = {key.sign_domain: key.left for key in keys if key.left is not None}
    return {domain: left for domain, left in lefts.items() if left <= FEW_LEFT}


def _select(
    session: Session, selection: Selection, saved: str | None, *, recorded: bool
) -> selected.Checkable:
    """What is selected of the file `saved`, or of the ledger; `recorded`: looks are."""
    if saved is None:
        return selected.Checkable(
            selected.registered_results(session, selection), session.reporter,
            retired=selected.retired_keys(session), counted=None if recorded else (),
        )  # fmt: skip
    results, status = selected.saved_results(session, saved, selection)
    retired = {
        result.registration.key: result.reason
        for result in results
        if result.outcome is Outcome.RETIRED
    }
    counted: set[RegistrationKey] = set()
    if recorded:  # of those keys that the ledger has with the same record
        try:
            sound = [result.registration for result in results if sound_record(result)]
            counted = same_records(session.open_ledger(for_writing=False), sound)
        except LedgerError as error:
            checking.warn_not_recorded(session, error)
        except UsageError:  # no account is set up, and a saved result needs none
            pass
    return selected.Checkable(
        results, session.reporter, retired=retired, counted=counted, status=status
    )


def _note_automation(session: Session, missing: Collection[str]) -> None:
    if not missing or session.has_dns_targets or session.profile.is_sandbox:
        return
    how = "`dkimctl init --dns PROVIDER`, or rfc2136 for your own server"
    if session.config_file.exists():
        how = f"set `dns` in {session.config_file}"
    session.reporter.note(f"dkimctl: or let dkimctl change DNS: {how}")
