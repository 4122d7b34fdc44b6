"""`dkimctl register`: the whole file, safely, again and again."""

from __future__ import annotations

import functools
import gc
import itertools
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.options import examples, with_session
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.results import Shown, show, summary, worst
from dkimctl.cli.session import Session
from dkimctl.cli.zones import resolve_zones
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, ServiceError, UsageError
from dkimctl.models.registration import DomainSpec, Outcome, key_of
from dkimctl.render.renderer import Format

if TYPE_CHECKING:
    from dkimctl.cli.progress.registering import Progress
    from dkimctl.client.wire import Reply
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.models.registration import Result
    from dkimctl.registration.engine.engine import Registrar
    from dkimctl.registration.planning import Planner

app = typer.Typer(add_completion=False)

_TO_GO_ON_WITH = (Outcome.PENDING, Outcome.UNKNOWN, Outcome.FAILED)


@app.command(
    epilog=examples(
        "dkimctl register domains.yaml",
        "dkimctl register --dry-run domains.yaml",
        "dkimctl register --assign-selector s%Y%m domains.yaml",
        "dkimctl register --sandbox domains.example.yaml",
        "dkimctl register --format zone - < domains.yaml > dkim.zone",
    )
)
@with_session
def register(
    session: Session,
    output_options: OutputOptions,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A spec file (YAML); `-` is standard input.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done; send nothing.")
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the service even for what the ledger has.")
    ] = False,
    assign_selector: Annotated[
        str | None,
        typer.Option(
            "--assign-selector",
            metavar="TEMPLATE",
            help="A selector for entries without one, such as s%Y%m; {domain} stands for a hash.",
        ),
    ] = None,
    retry_unknown: Annotated[
        bool,
        typer.Option(
            "--retry-unknown",
            help="Send again what has no selector and was never answered; that may register it "
            "twice.",
        ),
    ] = False,
) -> int:
    """Register the domains of a spec file for DKIM signing, and show their DNS records.

    What is registered already is not sent again, so a second run changes nothing.
    """
    from dkimctl.cli.interruption import stopping

    with stopping(_interrupt):
        return _run(session, output_options, file, dry_run=dry_run, template=assign_selector,
                    refresh=refresh, retry_unknown=retry_unknown)  # fmt: skip


def _interrupt() -> None:
    """Before anything is sent, there is nothing to wait for."""
    raise KeyboardInterrupt


def _run(
    session: Session,
    output_options: OutputOptions,
    file: str,
    *,
    dry_run: bool,
    template: str | None,
    refresh: bool,
    retry_unknown: bool,
) -> int:
    from dkimctl.registration.planning import Planner
    from dkimctl.specs.advice import warnings

    specs = session.read_specs(file)
    gc.freeze()  # they stay to the end: no search for garbage is to go through them
    for text in warnings(specs, datetime.now(UTC)):
        session.reporter.warn(text)
    make_planner = functools.partial(
        Planner,
        assign=_assignment(template, specs),
        refresh=refresh and not dry_run,
        retry_unknown=retry_unknown,
    )
    if dry_run:
        return _plan(session, specs, make_planner, output_options)
    output_options = resolve_zones(output_options, _names(specs), session.reporter.note)
    return _register(session, specs, make_planner, output_options)


def _names(specs: Sequence[DomainSpec]) -> Iterator[str]:
    """Where the records are going to be; of a selector that is not known yet, what is above it."""
    for spec in specs:
        above = f"_domainkey.{spec.sign_domain}"
        yield above if spec.selector is None else f"{spec.selector}.{above}"


def _assignment(
    template: str | None, specs: Sequence[DomainSpec]
) -> Callable[[DomainSpec], DomainSpec]:
    """What gives entries a selector, before anything is sent."""
    if template is None:
        return lambda spec: spec
    from dkimctl.specs.selector_template import SelectorTemplate

    selectors = SelectorTemplate(template, datetime.now().astimezone())
    selectors.check(specs)
    return selectors.assign


def _plan(
    session: Session,
    specs: Sequence[DomainSpec],
    make_planner: Callable[[Ledger], Planner],
    output_options: OutputOptions,
) -> int:
    from dkimctl.registration.planning import plan

    if output_options.is_default:
        output_options = output_options._replace(fmt=Format.TABLE)
    if output_options.fmt not in (Format.TABLE, Format.JSON):
        raise UsageError(
            f"a plan has no DNS records to show as {output_options.fmt}",
            hint="use --format table or json",
        )
    planner = make_planner(session.open_ledger(for_writing=False))
    shown = show(plan(specs, planner), output_options, session.reporter, expected=len(specs))
    # Nothing was asked now: what is unknown is so in the ledger, and a no.
    return shown.status if shown.failure else min(shown.status, ExitCode.NO)


def _register(
    session: Session,
    specs: Sequence[DomainSpec],
    make_planner: Callable[[Ledger], Planner],
    output_options: OutputOptions,
) -> int:
    from dkimctl.cli.interruption import stopping
    from dkimctl.cli.progress.registering import Progress

    session.lock_account()
    ledger = session.open_ledger(for_writing=True)
    progress = Progress(
        len(specs),
        session.reporter,
        verbose=session.flags["verbose"],
        # Other formats are written while the run goes on: over a bar, on a terminal.
        may_draw=output_options.fmt is Format.TABLE or not output_options.is_on_terminal,
    )
    registrar = _registrar(session, ledger, make_planner(ledger), progress)
    # Closing it takes the bar off the terminal, before an error is told.
    with stopping(registrar.stop), closing(_watched(registrar.run(specs), progress)) as results:
        first = list(itertools.islice(results, 1))
        if registrar.stopped is not None and not registrar.has_reached:
            raise _nothing_sent(session, registrar.stopped, len(specs))
        shown = show(
            itertools.chain(first, results),
            output_options,
            session.reporter,
            expected=len(specs),
            idle=registrar.attend,
        )
    if registrar.stopped is None:
        _tell_left_over(session, ledger, specs)
    return _finish(session, registrar.stopped, shown, output_options)


def _nothing_sent(session: Session, stopped: DkimctlError, count: int) -> DkimctlError:
    """The error to end with where there is nothing to show."""
    counts = Counter({Outcome.PENDING: count})
    session.reporter.summarize(summary(counts), counts)
    return _interrupted(counts) if isinstance(stopped, Interrupted) else stopped


def _registrar(session: Session, ledger: Ledger, planner: Planner, progress: Progress) -> Registrar:
    from dkimctl.registration.engine.engine import Registrar
    from dkimctl.registration.engine.limits import Limits

    profile = session.profile
    return Registrar(
        ledger,
        planner,
        lambda: _sender(session),
        watch=progress,
        warn=session.reporter.warn,
        limits=Limits(
            profile.batch_size, profile.concurrency, profile.max_wait, grace=profile.timeout
        ),
    )


def _sender(session: Session) -> Callable[[Sequence[DomainSpec]], Reply]:
    # Made before there are threads, each of which would otherwise make its own.
    client, authorizer = session.client, session.authorizer
    return lambda batch: authorizer.call(lambda token: client.register(token, batch))


def _watched(results: Iterator[Result], progress: Progress) -> Generator[Result]:
    """The results; once the last is there, the progress is off the terminal."""
    with progress:
        yield from results


def _tell_left_over(session: Session, ledger: Ledger, specs: Sequence[DomainSpec]) -> None:
    """Tell of requests of earlier runs that nobody answered, and this file does not ask for."""
    intents = ledger.intents()
    if not intents:
        return
    asked = {spec.key for spec in specs}
    others = [
        intent.sign_domain + (f" (selector {intent.selector})" if intent.selector else "")
        for intent in intents
        # An entry without selector takes over any of its domain.
        if asked.isdisjoint({intent.key, key_of(intent.sign_domain, None)})
    ]
    if others:
        session.reporter.warn(
            f"of earlier runs, {len(others)} that this file does not have were sent and never "
            f"answered: {', '.join(others[:5])}{', ...' if len(others) > 5 else ''}",
            hint="register a file that has them again",
        )


def _finish(
    session: Session, stopped: DkimctlError | None, shown: Shown, output_options: OutputOptions
) -> int:
    """What is said at the end, and the exit code."""
    if isinstance(stopped, Interrupted):
        raise _interrupted(shown.counts)
    if stopped is None and (count := shown.counts[Outcome.PENDING]):
        stopped = ServiceError(
            f"the service turned {count} {'domain' if count == 1 else 'domains'} away, again and "
            "again (429)",
            hint="run the same command again later, with a lower --concurrency",
        )
    if stopped is not None:
        session.reporter.error(stopped)
        return worst([shown.status, stopped.exit_code])
    if output_options.fmt is Format.TABLE and shown.counts:
        command = session.command("show-dns", "--format zone")
        session.reporter.note(f"dkimctl: next, for your DNS: {command}")
        command = session.command("check-dns", "--wait 30m")
        session.reporter.note(f"dkimctl: then see that it is published: {command}")
    return shown.status


def _interrupted(counts: Mapping[Outcome, int]) -> Interrupted:
    total = sum(counts.values())
    done = total - sum(counts.get(outcome, 0) for outcome in _TO_GO_ON_WITH)
    command = shlex.join(["dkimctl", *sys.argv[1:]])
    return Interrupted(
        f"interrupted: {done} of {total} domains are done",
        hint=f"what was answered is in the ledger; to go on: {command}",
    )
