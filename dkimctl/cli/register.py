"""`dkimctl register`: the whole file, safely, again and again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl import settings
from dkimctl.cli.options import FormatOption, TtlOption, examples, with_session
from dkimctl.cli.results import default_format, show, worst
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError
from dkimctl.models import DomainSpec
from dkimctl.render.formats import Format

if TYPE_CHECKING:
    from dkimctl.client import Reply

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "dkimctl register domains.yaml",
        "dkimctl register --dry-run domains.yaml",
        "dkimctl register --sandbox domains.example.yaml",
        "dkimctl register --format zone - < domains.yaml > dkim.zone",
    )
)
@with_session
def register(
    session: Session,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A spec file (YAML); `-` is standard input.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done; send nothing.")
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the service even for what the ledger has.")
    ] = False,
    fmt: FormatOption = None,
    ttl: TtlOption = 3600,
) -> int:
    """Register the domains of a spec file for DKIM signing, and show their DNS records.

    What is registered already is not sent again, so a second run changes nothing.
    """
    from dkimctl.specs import warnings

    specs = session.read_specs(file)
    for text in warnings(specs, datetime.now(UTC)):
        session.reporter.warn(text)
    if dry_run:
        return _plan(session, specs, fmt or Format.TABLE)
    return _register(session, specs, fmt or default_format(), refresh=refresh, ttl=ttl)


def _plan(session: Session, specs: Sequence[DomainSpec], fmt: Format) -> int:
    from dkimctl.planning import plan

    if fmt not in (Format.TABLE, Format.JSON):
        raise UsageError(
            f"a plan has no DNS records to show as {fmt}", hint="use --format table or json"
        )
    ledger = session.open_ledger(for_writing=False)
    return show(plan(specs, ledger), fmt, session.reporter)


def _register(
    session: Session, specs: Sequence[DomainSpec], fmt: Format, *, refresh: bool, ttl: int
) -> int:
    from dkimctl.registering import Registrar

    def send(batch: Sequence[DomainSpec]) -> Reply:
        return session.authorizer.call(lambda token: session.client.register(token, batch))

    registrar = Registrar(
        session.open_ledger(for_writing=True),
        send,
        batch_size=session.profile.batch_size,
        refresh=refresh,
        warn=session.reporter.warn,
    )
    results = registrar.run(specs)
    first = list(itertools.islice(results, 1))
    if registrar.stopped is not None and not registrar.answered:
        raise registrar.stopped  # there is nothing to show
    status = show(itertools.chain(first, results), fmt, session.reporter, ttl=ttl)
    if registrar.stopped is None:
        if fmt is Format.TABLE and specs:
            session.reporter.note(f"dkimctl: next, for your DNS: {_show_dns(session)}")
        return status
    session.reporter.error(registrar.stopped)
    return worst([status, registrar.stopped.exit_code])


def _show_dns(session: Session) -> str:
    name = session.profile.name
    profile = "" if name == settings.DEFAULT_PROFILE else f"--profile {name} "
    return f"dkimctl show-dns {profile}--format zone"
