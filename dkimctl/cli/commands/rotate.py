"""`dkimctl rotate`: specs for the successors of old keys, and the old records to remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer

from dkimctl.cli.options.rotation import (
    DEFAULTS,
    KeyLenOption,
    OlderThanOption,
    RetiredFormatOption,
    RetiredOption,
    SelectorOption,
    StartInOption,
    ZoneOption,
    no_effect,
    read_policy,
    read_retired_output,
)
from dkimctl.cli.options.shared import OutputOption, examples, with_session
from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.rotation import report_rotation, show_retired
from dkimctl.cli.selection import (
    SelectionArgument,
    read_selection,
    require_empty,
    warn_unmatched,
)
from dkimctl.cli.session import Session

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "dkimctl rotate > successors.yaml",
        "dkimctl rotate | dkimctl register -",
        "dkimctl rotate '*.example.com' --older-than 90d --start-in 7d --selector s%Y%m",
        "dkimctl rotate --retired",
        "dkimctl rotate --retired --format nsupdate | nsupdate -k KEYFILE",
    )
)
@with_session
def rotate(
    session: Session,
    selection: SelectionArgument = None,
    older_than: OlderThanOption = None,
    start_in: StartInOption = None,
    template: SelectorOption = None,
    key_len: KeyLenOption = None,
    retired: RetiredOption = False,
    fmt: RetiredFormatOption = None,
    zone: ZoneOption = None,
    output: OutputOption = None,
) -> int:
    """Print specs (YAML) for the successors of old keys, to be registered. Nothing is sent.

    With --retired, list the old records whose successors took over long ago.
    """
    options = {"--older-than": older_than, "--start-in": start_in, "--selector": template,
               "--key-len": key_len}  # fmt: skip
    given = {option: text for option, text in options.items() if text is not None}
    if retired:
        if given:
            raise no_effect(next(iter(given)), "with")
        return _list_retired(session, selection, read_retired_output(fmt, zone or (), output))
    if fmt or zone:
        raise no_effect("--format" if fmt else "--zone", "without")
    return _print_successors(session, selection, DEFAULTS | given, output)


def _print_successors(
    session: Session, words: Sequence[str] | None, options: Mapping[str, str], output: Path | None
) -> int:
    from dkimctl.render.spec_yaml import render_spec_yaml
    from dkimctl.rotation.successors import Rotation, plan_rotation

    now = datetime.now(UTC)
    policy = read_policy(options, now)
    selection = read_selection(session, words)
    rotation = plan_rotation(session.open_ledger(for_writing=False), selection, policy, now)
    if rotation is None:
        require_empty(session, selection)
        rotation = Rotation([], [], [])
    older_than = options["--older-than"]
    comment = f"Successors of keys older than {older_than}, for `dkimctl register FILE`"
    write_chunks(render_spec_yaml(rotation.successors, comment), output)
    report_rotation(session.reporter, rotation, start_date=policy.start_date, older_than=older_than)
    return warn_unmatched(session, selection)


def _list_retired(
    session: Session, words: Sequence[str] | None, output_options: OutputOptions
) -> int:
    from dkimctl.rotation.retirement import as_result, select_statuses

    selection = read_selection(session, words)
    ledger = session.open_ledger(for_writing=False)
    statuses = select_statuses(ledger, selection, datetime.now(UTC))
    if not statuses:
        require_empty(session, selection)
    results = [as_result(status) for status in statuses if status.is_retired]
    show_retired(session, results, output_options)
    return warn_unmatched(session, selection)
