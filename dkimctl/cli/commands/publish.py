"""`dkimctl publish`: put the records into DNS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from dkimctl.cli import terminal
from dkimctl.cli.options import LEDGER, App, OutputOption, YesOption, examples
from dkimctl.cli.options.publishing import (
    CheckAccessOption,
    DryRunOption,
    FormatOption,
    PublishOptions,
    ReplaceOption,
    WaitOption,
)
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.publication import PublicationView
from dkimctl.cli.output.results import worst
from dkimctl.cli.selection import SelectionArgument
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import UsageError
from dkimctl.render.renderer import PublicationFormat

app = App()


@app.command(
    epilog=examples(
        "dkimctl publish",
        "dkimctl publish --dry-run '*.example.com'",
        "dkimctl publish --yes --wait 30m",
        "dkimctl publish --dry-run --format markdown --output plan.md",
        "dkimctl publish --check-access",
    ),
    shows=LEDGER,
)
def publish(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    replace: ReplaceOption = False,
    wait: WaitOption = None,
    check_access: CheckAccessOption = False,
    fmt: FormatOption = PublicationFormat.TABLE,
    output: OutputOption = None,
) -> int:
    """Put the records of what is registered into DNS.

    The config file says how, for each zone. The plan is shown first. Nothing is removed:
    `dkimctl rotate run` does that.
    """
    session = open_session(ctx)
    words = selection or ()
    if check_access:
        others = (dry_run, yes, replace, wait)
        return _check_access(session, words, fmt, output, is_alone=not any(others))
    options = PublishOptions(fmt, output, dry_run, yes, replace, wait)
    options.require_sound(is_interactive=terminal.is_interactive())
    return _publish(session, words, options)


def _publish(session: Session, words: Sequence[str], options: PublishOptions) -> int:
    from dkimctl.cli.publishing.run import publish_records, unchanged_if_interrupted
    from dkimctl.cli.publishing.selecting import select_to_publish
    from dkimctl.cli.publishing.targets import open_dns_targets

    targets = open_dns_targets(session)
    if options.output is not None:
        require_writable(options.output)  # before anything is changed
    with unchanged_if_interrupted():
        selected = select_to_publish(session, words)
    view = PublicationView(session.reporter, options, words)
    status = publish_records(session, selected.registrations, targets, options, view)
    return worst([status, selected.status])


def _check_access(
    session: Session,
    words: Sequence[str],
    fmt: PublicationFormat,
    output: Path | None,
    *,
    is_alone: bool,
) -> int:
    from dkimctl.cli.publishing.access import show_access

    if not is_alone:
        raise UsageError(
            "--check-access changes nothing, and takes only --format and --output",
            hint="leave out the other options",
        )
    if fmt is PublicationFormat.MARKDOWN:
        raise UsageError("--check-access has no Markdown", hint="write --format table or json")
    return show_access(session, words, fmt, output)
