"""`dkimctl check-dns`: whether DNS has the registered records."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from dkimctl.cli.checkable import select_checkable
from dkimctl.cli.interruption import ending_like_ctrl_c
from dkimctl.cli.looks import recorded_looks
from dkimctl.cli.notify import CheckNotices, require_checks_to_notify
from dkimctl.cli.options import LEDGER, App, OutputOption, examples
from dkimctl.cli.options.checking import (
    MAX_IN_FLIGHT,
    WARN_WITHIN,
    ExpectAbsentOption,
    FormatOption,
    MaxInFlightOption,
    NotifyOption,
    ResolverOption,
    SavedOption,
    ServerOption,
    TestNoticeOption,
    WaitOption,
    WarnWithinOption,
    open_source,
    read_policy,
)
from dkimctl.cli.output.checks import CheckSink
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.results import worst_check
from dkimctl.cli.progress import CheckProgress
from dkimctl.cli.selection import SelectionArgument, read_selection, warn_unmatched
from dkimctl.cli.session import Session, open_session
from dkimctl.dns.looks import Looks
from dkimctl.dns.verdicts import Check
from dkimctl.errors import Interrupted, UsageError
from dkimctl.models.registration import Registration
from dkimctl.render.monitoring import Run
from dkimctl.render.renderer import CheckFormat

app = App()


@app.command(
    epilog=examples(
        "dkimctl check-dns",
        "dkimctl check-dns --wait 30m",
        "dkimctl check-dns '*.example.com' --server 192.0.2.1 --server 192.0.2.2:5353",
        "dkimctl check-dns --format json > checks.json",
        "dkimctl check-dns --from retired.json --expect-absent",
        "dkimctl check-dns --format nagios",
        "dkimctl check-dns --format prometheus --output dkim.prom",
        "dkimctl check-dns --test-notice",
    ),
    shows=LEDGER,
)
def check_dns(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    saved: SavedOption = None,
    server: ServerOption = None,
    resolver: ResolverOption = False,
    max_in_flight: MaxInFlightOption = MAX_IN_FLIGHT,
    wait: WaitOption = None,
    expect_absent: ExpectAbsentOption = False,
    warn_within: WarnWithinOption = WARN_WITHIN,
    notify: NotifyOption = False,
    test_notice: TestNoticeOption = False,
    fmt: FormatOption = None,
    output: OutputOption = None,
) -> int:
    """Check that DNS has the registered records. No token is needed.

    Every authoritative server of each zone is asked. The exit code is 1 if a record is not
    published as registered; else 4 if DNS gave no answer for one. With --format nagios, it is that
    of a monitoring plugin.
    """
    from dkimctl.dns.check import check_publication

    session = open_session(ctx)
    began = time.time()
    policy = read_policy(wait, warn_within, expect_absent=expect_absent)
    if test_notice:
        return _send_test_notice(session, selection, saved, notify, expect_absent, wait)
    if notify:
        _refuse_as_plugin(fmt)
        require_checks_to_notify(session, saved, expect_absent=expect_absent)
    if output is not None:
        require_writable(output)  # before a long wait
    source = open_source(server or (), resolver, max_in_flight)
    selected = read_selection(session, selection)
    # What other servers have is not known if some are given.
    checkable = select_checkable(session, selected, saved, recorded=not source.is_given)
    run = Run(session.profile.name, began, lambda: bool(checkable.status or selected.unmatched()))
    progress = CheckProgress(session.reporter, policy.wanted, may_draw=_may_draw(fmt, output))
    looks = Looks(())
    try:
        with ending_like_ctrl_c(), recorded_looks(session, checkable.counted) as looks:
            notices = CheckNotices(session, source, policy, looks, checkable.retired)
            registrations: Iterable[Registration] = checkable.registrations
            with CheckSink(
                fmt,
                output,
                session.reporter,
                wanted=policy.wanted,
                selection=selection or (),
                has_targets=session.has_dns_targets,
                run=run,
            ) as sink:
                emit: Callable[[Check], None] = sink.emit
                if notify:
                    registrations, emit = notices.watch(registrations), notices.emit_to(emit)
                with progress:
                    check_publication(
                        registrations, source, policy, emit,
                        progress=progress, looks=looks, retired=checkable.retired,
                    )  # fmt: skip
                status = sink.close()
            if notify:
                status = worst_check([status, notices.send()])
    except KeyboardInterrupt:
        hint = "run the same command to check again"
        if looks.latest:
            hint = f"what was seen is in the ledger; {hint}"
        raise Interrupted(hint=hint) from None
    status = worst_check([status, checkable.status, warn_unmatched(session, selected)])
    return sink.exit_status(status)


def _refuse_as_plugin(fmt: CheckFormat | None) -> None:
    if fmt is CheckFormat.NAGIOS:
        hint = "leave out one of them: your monitor tells of problems itself"
        raise UsageError("--notify cannot be combined with --format nagios", hint=hint)


def _send_test_notice(session: Session, *others: object) -> int:
    from dkimctl.cli.notify import send_test_notice

    if any(others):
        hint = "leave out the selection and the other options"
        raise UsageError("--test-notice checks nothing", hint=hint)
    return send_test_notice(session)


def _may_draw(fmt: CheckFormat | None, output: Path | None) -> bool:
    """A table is written at the end; other formats are written to a terminal meanwhile."""
    is_table = fmt in (None, CheckFormat.TABLE)
    return is_table or output is not None or not sys.stdout.isatty()
