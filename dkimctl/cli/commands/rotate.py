"""`dkimctl rotate`: specs for the successors of old keys, and the old records to remove."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import next_steps
from dkimctl.cli.options import (
    LEDGER,
    App,
    AssumeSuccessorsOption,
    OutputOption,
    examples,
    read_duration,
)
from dkimctl.cli.output import (
    OutputOptions,
    default_format,
    read_zone,
    require_writable,
    write_chunks,
)
from dkimctl.cli.results import write_results
from dkimctl.cli.selected import (
    MAX_AGE_OF_CHECK,
    SelectionArgument,
    read_retirement_policy,
    read_selection,
    report_not_retired,
    require_empty,
    retired_results,
    warn_unmatched,
)
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import UsageError, worst_check
from dkimctl.formats.nsupdate import NsupdateRenderer
from dkimctl.formats.renderer import Format, render_all
from dkimctl.models import DomainSpec, Outcome, named
from dkimctl.names import SelectorTemplate
from dkimctl.rotation.retirement import RetirementPolicy, Review, read_known_keys
from dkimctl.rotation.successors import Rotation, RotationPolicy, plan_rotation, start_date
from dkimctl.strict_yaml import yaml_scalar
from dkimctl.text import few, quoted, written_duration

app = App()

# Of the options that --retired does not take. That of --older-than is `max_age` in the config file.
_DEFAULTS = {"--start-in": "3d", "--selector": "s%Y%m%d", "--key-len": "2048"}
_KEY_LENS = ("1024", "2048")  # interface 2.3


class RetiredFormat(StrEnum):
    """What `rotate --retired --format` takes."""

    TABLE = "table"
    JSON = "json"
    NSUPDATE = "nsupdate"


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
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Replace keys older than this; 0d: all keys (default: `max_age` of `rotation` in "
            "the config file, or 180d).",
        ),
    ] = None,
    start_in: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time until signing with the new keys starts (default: "
            f"{_DEFAULTS['--start-in']}).",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--selector",
            metavar="TEMPLATE",
            help="Template of the new selectors; {domain} is a short hash of the domain (default: "
            f"{_DEFAULTS['--selector']}).",
        ),
    ] = None,
    key_len: Annotated[
        str | None,
        typer.Option(
            metavar="BITS",
            autocompletion=lambda: _KEY_LENS,
            help=f"Length of the new keys: {' or '.join(_KEY_LENS)} (default: "
            f"{_DEFAULTS['--key-len']}).",
        ),
    ] = None,
    retired: Annotated[
        bool,
        typer.Option(
            "--retired", help="List the old records that may be removed from DNS instead."
        ),
    ] = False,
    fmt: Annotated[
        RetiredFormat | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"With --retired: {', '.join(RetiredFormat)} (default: table on a terminal, else "
            "json).",
        ),
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZONE", help="With --format nsupdate: a zone of your DNS; repeatable."
        ),
    ] = None,
    no_check: Annotated[
        bool,
        typer.Option(
            "--no-check",
            help="With --retired: rely on earlier checks of the new records, and ask no server.",
        ),
    ] = False,
    max_age: Annotated[
        str | None,
        typer.Option(
            "--max-age-of-check",
            metavar="TIME",
            help=f"With --no-check: the longest age of those checks (default: {MAX_AGE_OF_CHECK}).",
        ),
    ] = None,
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
    own = {"--older-than": older_than, "--start-in": start_in, "--selector": template,
           "--key-len": key_len}  # fmt: skip
    given = {option: text for option, text in own.items() if text is not None}
    if retired:
        if given:
            raise _no_effect(next(iter(given)), "with")
        policy = read_retirement_policy(
            session, datetime.now(UTC), assume_successors=assume_successors, max_age=max_age
        )
        if zone and fmt is not RetiredFormat.NSUPDATE:
            raise UsageError("--zone has no effect with this format", hint="it is for nsupdate")
        output_options = OutputOptions(
            Format(fmt) if fmt else default_format(output, for_machines=Format.JSON),
            zones=[read_zone("--zone", name) for name in zone or ()],
            output=output,
        )
        return _list_retired(session, selection or (), policy, output_options, look=not no_check)
    only_retired = {
        "--format": fmt, "--zone": zone, "--no-check": no_check, "--max-age-of-check": max_age,
        "--assume-successors": assume_successors,
    }  # fmt: skip
    if option := next((option for option, value in only_retired.items() if value), None):
        raise _no_effect(option, "without")
    max_key_age = written_duration(session.config.rotation.max_age.total_seconds())
    options = {"--older-than": max_key_age, **_DEFAULTS, **given}
    return _print_successors(session, selection, options, output)


def _no_effect(option: str, how: str) -> UsageError:
    """The error for an option that is for the other mode; `how` is "with" or "without"."""
    return UsageError(
        f"{option} has no effect {how} --retired",
        hint="--retired lists old records; without it, rotate prints the specs of new keys",
    )


def _print_successors(
    session: Session, words: Sequence[str] | None, options: Mapping[str, str], output: Path | None
) -> int:
    """Print the specs; say how many domains are due, and warn about others."""
    reporter, now = session.reporter, datetime.now(UTC)
    start_in = read_duration("--start-in", options["--start-in"], may_be_zero=True)
    if not start_in:
        raise UsageError(
            f"in --start-in: with {quoted(options['--start-in'])}, signing would start before the "
            "new records can be in DNS",
            hint=f"leave time to publish them, such as {_DEFAULTS['--start-in']}",
        )
    if options["--key-len"] not in _KEY_LENS:
        hint = f"write {' or '.join(_KEY_LENS)}"
        raise UsageError("in --key-len: invalid key length", hint=hint)
    template = SelectorTemplate(options["--selector"], now.astimezone(), option="--selector")
    policy = RotationPolicy(
        read_duration("--older-than", options["--older-than"], may_be_zero=True),
        start_date(now, start_in),
        int(options["--key-len"]),
        template.selector,
    )
    selection = read_selection(session, words)
    rotation = plan_rotation(session.open_ledger(for_writing=False), selection, policy, now)
    if rotation is None:
        require_empty(session, selection)
        rotation = Rotation([], [], [])
    older_than = options["--older-than"]
    older_than += "" if older_than[-1:].isalpha() else "s"
    comment = f"Successors of keys older than {older_than}, for `dkimctl register FILE`"
    write_chunks(render_spec_yaml(rotation.successors, reporter.complete(comment)), output)
    if rotation.undated:
        reporter.warn(
            f"left out because the age of their keys is unknown: {', '.join(rotation.undated)}",
            hint="`dkimctl register --refresh FILE` gets their dates from the service",
            code="undated",
        )
    if rotation.unanswered:
        reporter.warn(
            f"a request for another selector was never answered: {few(rotation.unanswered)}",
            hint="to settle that first, register the file of that run again",
            code="unanswered",
        )
    if not rotation.successors:
        reporter.note(
            "dkimctl: nothing is due: no domain's newest key is older than "
            f"{older_than} and already signing"
        )
        return warn_unmatched(session, selection)
    reporter.note(
        f"dkimctl: due: {len(rotation.successors)}; signing with the new keys starts at "
        f"{policy.start_date}: publish their records before then"
    )
    register = "`dkimctl register FILE`"
    if output is not None:
        register = next_steps.command("register", [output])
    elif sys.stdout.isatty():
        command = next_steps.same_command(more=("--output", "successors.yaml"))
        register = f"`{command} && dkimctl register successors.yaml`"
    reporter.note(f"dkimctl: next: {register}")
    reporter.note(
        "dkimctl: when the grace period after that start is over: `dkimctl rotate --retired` "
        "lists the old records to remove"
    )
    return warn_unmatched(session, selection)


def render_spec_yaml(specs: Sequence[DomainSpec], comment: str) -> Iterator[str]:
    """A comment line, then a list of entries without unset fields; `[]` for no specs."""
    yield f"# {comment}\n"
    for spec in specs:
        fields = spec._asdict().items()
        lines = (f"{key}: {yaml_scalar(value)}\n" for key, value in fields if value is not None)
        yield "- " + "  ".join(lines)
    if not specs:
        yield "[]\n"


def _list_retired(
    session: Session,
    words: Sequence[str],
    policy: RetirementPolicy,
    output_options: OutputOptions,
    *,
    look: bool,
) -> int:
    """Write the old records, and say how to remove them."""
    from dkimctl.cli.checking import review_now  # asks DNS, and so imports asyncio

    reporter, fmt = session.reporter, output_options.fmt
    require_writable(output_options.output)  # before a long look
    selection = read_selection(session, words)
    known = read_known_keys(session.open_ledger(for_writing=False), selection)
    if not known.selected:
        require_empty(session, selection)
    review = review_now(session, known, policy) if look else Review(known.statuses(policy))
    results = retired_results(review)
    if fmt is Format.NSUPDATE:
        renderer = NsupdateRenderer(output_options.zones, ttl=None)
        write_chunks(render_all(renderer, results), output_options.output)
        unusable = [
            named(result.registration) for result in results if result.outcome is Outcome.UNUSABLE
        ]
        if unusable:
            reporter.warn(
                f"left out because their records are unusable: {few(unusable)}",
                hint="look for their records in DNS; `dkimctl ledger forget` removes them from the "
                "ledger",
                code=Outcome.UNUSABLE,
            )
    else:
        write_results(results, output_options, reporter, is_paged=True)
    status = report_not_retired(session, review)
    if not results:
        return worst_check([status, warn_unmatched(session, selection)])
    assumed = ["--assume-successors"] if policy.assume_successors else []
    list_them = next_steps.rotate_retired(words, *assumed)
    reporter.note(
        f"dkimctl: retired: {len(results)}; the service does not tell when it stops using a "
        "selector: before you delete its record, check that mail sent now is signed with the new "
        "selector (s=)"
    )
    if fmt is not Format.NSUPDATE:
        how = f"{list_them} --format nsupdate --output remove.txt && nsupdate -k KEYFILE remove.txt"
        if session.has_dns_targets and not assumed:
            how = "dkimctl rotate run"
        reporter.note(f"dkimctl: next, to delete: `{how}`")
    reporter.note(
        f"dkimctl: next, to check that they are gone: `{list_them} --format json --output "
        "retired.json && dkimctl check-dns --from retired.json --expect-absent`"
    )
    reporter.note(f"dkimctl: and then: {next_steps.forget(words, *assumed)}")
    return worst_check([status, warn_unmatched(session, selection)])
