"""`dkimctl rotate`: the specs of the successors of old keys, and the records to remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.options import examples, with_session
from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.retired import RetiredFormat, show_retired
from dkimctl.cli.selection import (
    SelectionArgument,
    few,
    nothing_registered,
    read_selection,
    tell_unmatched,
)
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError
from dkimctl.models.registration import Registration
from dkimctl.text.durations import parse_duration
from dkimctl.text.wording import shown

if TYPE_CHECKING:
    from dkimctl.ledger.selection import Selection
    from dkimctl.rotation.successors import Rotation, RotationPolicy

app = typer.Typer(add_completion=False)

_DEFAULTS = {
    "--older-than": "180d",  # M3AAWG, DKIM Key Rotation Best Common Practices: every six months
    "--start-in": "3d",
    "--selector": "s%Y%m%d",
    "--key-len": "2048",
}
_KEY_LENS = ("1024", "2048")  # interface 2.3


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
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="TIME",
            help=f"Keys of that age are due; 0d: all keys (default: {_DEFAULTS['--older-than']}).",
        ),
    ] = None,
    start_in: Annotated[
        str | None,
        typer.Option(
            "--start-in",
            metavar="TIME",
            help=f"Sign with the new keys from then on (default: {_DEFAULTS['--start-in']}).",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--selector",
            metavar="TEMPLATE",
            help="The new selectors; {domain} stands for a hash (default: "
            f"{_DEFAULTS['--selector']}).",
        ),
    ] = None,
    key_len: Annotated[
        str | None,
        typer.Option(
            "--key-len",
            metavar="BITS",
            help=f"Of the new keys: {' or '.join(_KEY_LENS)} (default: {_DEFAULTS['--key-len']}).",
        ),
    ] = None,
    retired: Annotated[
        bool,
        typer.Option("--retired", help="List instead old records that may be removed from DNS."),
    ] = False,
    fmt: Annotated[
        RetiredFormat | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"With --retired: {', '.join(RetiredFormat)}; by default table on a terminal, "
            "else json.",
        ),
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option(
            "--zone",
            metavar="ZONE",
            help="With --format nsupdate: a zone of your DNS, once for each.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write there, whole or not at all."),
    ] = None,
) -> int:
    """Print the specs (YAML) of the successors of old keys, to be registered; nothing is sent.

    With --retired, list the old records whose successors have long taken over.
    """
    own = {"--older-than": older_than, "--start-in": start_in, "--selector": template,
           "--key-len": key_len}  # fmt: skip
    given = {option: text for option, text in own.items() if text is not None}
    if retired:
        if given:
            raise _meaningless(next(iter(given)), "with")
        return show_retired(session, selection, fmt, zone or (), output)
    if fmt or zone:
        raise _meaningless("--format" if fmt else "--zone", "without")
    return _show_successors(session, selection, _DEFAULTS | given, output)


def _meaningless(option: str, how: str) -> UsageError:
    return UsageError(
        f"{option} means nothing {how} --retired",
        hint="--retired lists old records; without it, rotate prints the specs of new keys",
    )


def _show_successors(
    session: Session,
    words: Sequence[str] | None,
    options: Mapping[str, str],
    output: Path | None,
) -> int:
    from dkimctl.render.spec_yaml import render_spec_yaml
    from dkimctl.rotation.successors import find_successors

    now = datetime.now(UTC)
    terms = _terms(options, now)
    chosen = read_selection(session, words)
    ledger = session.open_ledger(for_writing=False)
    known = _of_selected_domains(session, list(ledger.all()), chosen)
    pending = [intent.key for intent in ledger.intents()]
    rotation = find_successors(known, pending, now, terms)
    comment = (
        f"Successors of keys older than {options['--older-than']}, for `dkimctl register FILE`"
    )
    write_chunks(render_spec_yaml(rotation.successors, comment), output)
    _tell_rotation(session, rotation, terms, options["--older-than"])
    return tell_unmatched(session, chosen)


def _of_selected_domains(
    session: Session, known: Sequence[Registration], chosen: Selection
) -> list[Registration]:
    """All that is known of the domains of which anything is selected."""
    ours = (found for found in known if not found.is_taken)
    domains = {found.sign_domain for found in chosen.pick(ours)}
    if not domains:
        raise nothing_registered(session, chosen)
    return [found for found in known if found.sign_domain in domains]


def _terms(options: Mapping[str, str], now: datetime) -> RotationPolicy:
    from dkimctl.rotation.successors import RotationPolicy, start_date
    from dkimctl.specs.selector_template import SelectorTemplate

    start_in = _duration(options, "--start-in")
    if not start_in:
        raise UsageError(
            f"in --start-in: {shown(options['--start-in'])} would have mail signed with the new "
            "keys before DNS can have their records",
            hint=f"leave time to publish them, such as {_DEFAULTS['--start-in']}",
        )
    if options["--key-len"] not in _KEY_LENS:
        raise UsageError(
            f"in --key-len: {shown(options['--key-len'])} is no length of a key",
            hint=f"write {' or '.join(_KEY_LENS)}",
        )
    template = SelectorTemplate(options["--selector"], now.astimezone(), option="--selector")
    return RotationPolicy(
        _duration(options, "--older-than"),
        start_date(now, start_in),
        int(options["--key-len"]),
        template.selector,
    )


def _duration(options: Mapping[str, str], name: str) -> timedelta:
    try:
        return timedelta(seconds=parse_duration(options[name], may_be_zero=True))
    except UsageError as error:
        raise UsageError(f"in {name}: {error.message}", hint=error.hint) from None


def _tell_rotation(
    session: Session, rotation: Rotation, terms: RotationPolicy, older_than: str
) -> None:
    if rotation.undated:
        session.reporter.warn(
            f"left out, since nothing tells how old their keys are: {', '.join(rotation.undated)}",
            hint="`dkimctl register --refresh FILE` asks the service for their dates",
            code="undated",
        )
    if rotation.unanswered:
        session.reporter.warn(
            "a request for another selector was sent and never answered for "
            f"{few(rotation.unanswered)}",
            hint="to settle that first, register the file of that run again",
            code="unanswered",
        )
    if rotation.successors:
        session.reporter.note(
            f"dkimctl: due: {len(rotation.successors)}; signing with the new keys is to start at "
            f"{terms.start_date}: register these specs, publish the records before then, and see "
            "with `dkimctl check-dns` that they are there"
        )
    else:
        session.reporter.note(
            "dkimctl: nothing is due: of every domain the newest key is younger than "
            f"{older_than}, or has yet to start"
        )
