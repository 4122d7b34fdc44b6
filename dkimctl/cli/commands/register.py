"""`dkimctl register`: the whole file, safely, again and again."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from dkimctl.cli.options import (
    ACCOUNT,
    CONNECTION,
    SENDING,
    App,
    FindZonesOption,
    FormatOption,
    OriginOption,
    OutputDirOption,
    ProviderOption,
    ResultsOutputOption,
    TtlOption,
    WideOption,
    ZoneOption,
    examples,
)
from dkimctl.cli.options.registering import (
    AssignSelectorOption,
    DomainOption,
    DryRunOption,
    PublishOption,
    RefreshOption,
    RetryUnknownOption,
    SpecFilesArgument,
    WaitOption,
    require_input,
)
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.options import OutputOptions, read_output_options, resolve_zones
from dkimctl.cli.output.results import Doing
from dkimctl.cli.output.run_summary import (
    finish_run,
    nothing_sent_error,
    open_sink,
    show_plan,
    warn_of_entries,
)
from dkimctl.cli.publishing.registered import AfterRegistering
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import DkimctlError
from dkimctl.models.registration import DomainSpec
from dkimctl.registration.engine import RegistrationRun, assign_from, record_names
from dkimctl.registration.preflight import Planner, inspect_entries

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger

    MakePlanner = Callable[[Ledger], Planner]

app = App()


@app.command(
    epilog=examples(
        "dkimctl register domains.yaml",
        "dkimctl register --dry-run domains.yaml more.csv",
        "dkimctl register --domain example.com --domain example.net",
        "dkimctl register --dry-run --format markdown --output plan.md domains.yaml",
        "dkimctl register --assign-selector s%Y%m domains.yaml",
        "dkimctl register --publish domains.yaml",
        "dkimctl register --sandbox domains.example.yaml",
        "dkimctl register --format zone --output dkim.zone - < domains.yaml",
    ),
    shows=(*ACCOUNT, *CONNECTION, *SENDING),
)
def register(
    ctx: typer.Context,
    files: SpecFilesArgument = None,
    domain: DomainOption = None,
    dry_run: DryRunOption = False,
    refresh: RefreshOption = False,
    assign_selector: AssignSelectorOption = None,
    retry_unknown: RetryUnknownOption = False,
    publish: PublishOption = False,
    wait: WaitOption = None,
    fmt: FormatOption = None,
    ttl: TtlOption = 3600,
    origin: OriginOption = None,
    zone: ZoneOption = None,
    find_zones: FindZonesOption = False,
    provider: ProviderOption = None,
    output: ResultsOutputOption = None,
    output_dir: OutputDirOption = None,
    wide: WideOption = False,
) -> int:
    """Register the domains of spec files, and show their DNS records.

    Domains that are registered already are not sent again, so a second run changes nothing.
    """
    from dkimctl.cli.interruption import interrupting

    session = open_session(ctx)
    output_options = read_output_options(
        fmt=fmt, ttl=ttl, origin=origin, zone=zone, find_zones=find_zones, provider=provider,
        output=output, output_dir=output_dir, wide=wide,
    )  # fmt: skip
    after = AfterRegistering.read(session, publish=publish, wait=wait, dry_run=dry_run)
    files, domains = files or [], domain or []
    require_input(files, domains)
    with interrupting():
        specs = session.read_specs(*files, domains=domains)
        gc.freeze()  # they stay to the end: spare the garbage collector from visiting them
        make_planner = functools.partial(
            Planner,
            assign=assign_from(assign_selector, specs, datetime.now().astimezone()),
            refresh=refresh and not dry_run,
            retry_unknown=retry_unknown,
        )
        if dry_run:
            planner = make_planner(session.open_ledger(for_writing=False))
            warn_of_entries(session.reporter, inspect_entries(specs, planner, datetime.now(UTC)))
            return show_plan(session.reporter, specs, planner, output_options)
        output_options = resolve_zones(output_options, record_names(specs), session.reporter.note)
        doing = Doing.REFRESHING if refresh else Doing.REGISTERING
        selection = next_steps.select_specs(files, domains)
        status = _register(session, selection, specs, make_planner, output_options, doing, after)
    return after.publish(selection, output_options, status)


def _register(
    session: Session,
    selection: Sequence[str],
    specs: Sequence[DomainSpec],
    make_planner: MakePlanner,
    output: OutputOptions,
    doing: Doing,
    after: AfterRegistering,
) -> int:
    from dkimctl.cli.interruption import stopping
    from dkimctl.cli.progress import RegistrationProgress

    sink = open_sink(session, selection, output, doing, len(specs))
    with ExitStack() as lock, sink:
        lock.enter_context(session.lock_account())
        ledger = session.open_ledger(for_writing=True)
        progress = RegistrationProgress(
            len(specs),
            session.reporter,
            verbose=session.flags["verbose"],
            may_draw=not output.is_written_to_terminal_meanwhile,
        )
        run = RegistrationRun(
            specs,
            ledger,
            make_planner(ledger),
            session.connect,
            observer=progress,
            warn=session.reporter.warn,
            limits=session.limits,
        )
        warn_of_entries(session.reporter, run.prepare(datetime.now(UTC)))
        with stopping(run.stop):
            try:
                with progress:
                    run.execute(after.seeing(sink.emit))
            except DkimctlError as error:
                if error is not run.stopped:
                    raise
                raise nothing_sent_error(session.reporter, run, error, doing) from None
            unanswered = [] if run.stopped else run.left_unanswered()
            lock.close()  # the next run need not wait for the reader of this one
            shown = sink.close()
    return finish_run(session, selection, run, unanswered, shown, output, says_next=not after)
