"""`dkimctl rotate`: specs for the successors of old keys, and the old records to remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dkimctl.cli.options import LEDGER, App, OutputOption, examples
from dkimctl.cli.options.rotation import (
    DEFAULTS,
    AssumeSuccessorsOption,
    KeyLenOption,
    MaxAgeOption,
    NoCheckOption,
    OlderThanOption,
    RetiredFormatOption,
    RetiredOption,
    SelectorOption,
    StartInOption,
    ZoneOption,
    no_effect,
    read_policy,
    read_retired_output,
    read_retirement_policy,
)
from dkimctl.cli.output.destination import require_writable, write_chunks
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.results import worst_check
from dkimctl.cli.output.rotation import report_rotation, show_retired
from dkimctl.cli.selection import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import Session, open_session
from dkimctl.text.durations import with_unit, written_duration

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import RetirementPolicy

app = App()


@app.command(
    epilog=examples(
        "dkimctl rotate > successors.yaml",
        "dkimctl rotate | dkimctl register -",
        "dkimctl rotate '*.example.com' --older-than 90d --start-in 7d --selector s%Y%m",
        "dkimctl rotate --retired",
        "dkimctl rotate --retired --format nsupdate --output remove.txt && "
        "nsupdate -k KEYFILE remove.txt",
        "dkimctl rotate run --dry-run",
    ),
    shows=LEDGER,
)
def rotate(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    older_than: OlderThanOption = None,
    start_in: StartInOption = None,
    template: SelectorOption = None,
    key_len: KeyLenOption = None,
    retired: RetiredOption = False,
    fmt: RetiredFormatOption = None,
    zone: ZoneOption = None,
    no_check: NoCheckOption = False,
    max_age: MaxAgeOption = None,
    assume_successors: AssumeSuccessorsOption = False,
    output: OutputOption = None,
) -> int:
    """Print specs (YAML) for the successors of old keys.

    They are for `register`; nothing is sent. `dkimctl rotate run` does all that is due by itself,
    and `dkimctl list` shows where each key is.

    With --retired, list the old records that may be removed from DNS. Their successors are checked
    in DNS first.
    """
    session = open_session(ctx)
    now = datetime.now(UTC)
    own = {"--older-than": older_than, "--start-in": start_in, "--selector": template,
           "--key-len": key_len}  # fmt: skip
    given = {option: text for option, text in own.items() if text is not None}
    if retired:
        if given:
            raise no_effect(next(iter(given)), "with")
        grace = session.config.rotation.grace
        policy = read_retirement_policy(max_age, now, grace, assume_successors=assume_successors)
        output_options = read_retired_output(fmt, zone or (), output)
        return _list_retired(session, selection, policy, output_options, look=not no_check)
    only_retired = {
        "--format": fmt, "--zone": zone, "--no-check": no_check, "--max-age-of-check": max_age,
        "--assume-successors": assume_successors,
    }  # fmt: skip
    if option := next((option for option, value in only_retired.items() if value), None):
        raise no_effect(option, "without")
    max_key_age = written_duration(session.config.rotation.max_age.total_seconds())
    options = {"--older-than": max_key_age, **DEFAULTS, **given}
    return _print_successors(session, selection, options, output)


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
    older_than = with_unit(options["--older-than"])
    comment = f"Successors of keys older than {older_than}, for `dkimctl register FILE`"
    comment = session.reporter.complete(comment)
    write_chunks(render_spec_yaml(rotation.successors, comment), output)
    report_rotation(
        session.reporter, rotation,
        start_date=policy.start_date, older_than=older_than, output=output,
    )  # fmt: skip
    return warn_unmatched(session, selection)


def _list_retired(
    session: Session,
    words: Sequence[str] | None,
    policy: RetirementPolicy,
    output_options: OutputOptions,
    *,
    look: bool,
) -> int:
    from dkimctl.cli.looks import review_now
    from dkimctl.rotation.review import Review, read_known_keys

    if output_options.output is not None:
        require_writable(output_options.output)  # before a long look
    selection = read_selection(session, words)
    known = read_known_keys(session.open_ledger(for_writing=False), selection)
    if not known.selected:
        require_empty(session, selection)
    review = review_now(session, known, policy) if look else Review(known.statuses(policy))
    status = show_retired(
        session, review, output_options, words or (),
        assume_successors=policy.assume_successors,
    )  # fmt: skip
    return worst_check([status, warn_unmatched(session, selection)])
