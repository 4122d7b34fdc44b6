"""`dkimctl rotate`: specs for the successors of old keys, and the old records to remove."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import next_steps, options, selected
from dkimctl.cli.options import App, option, read_duration
from dkimctl.cli.output import OutputOptions, default_format, read_format, read_zone, write_chunks
from dkimctl.cli.report import warn_alike
from dkimctl.cli.results import at_targets, write_results
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, UsageError, worst, worst_check
from dkimctl.files import new_name
from dkimctl.formats.renderer import Format
from dkimctl.models import DomainSpec, Outcome, named
from dkimctl.names import Selection, selector_template
from dkimctl.rotation.retirement import retired_results
from dkimctl.rotation.successors import Rotation, RotationPolicy, plan_rotation, start_date
from dkimctl.specs.entries import ENTRY_FIELDS
from dkimctl.strict_yaml import yaml_scalar
from dkimctl.text import few, format_duration, without_names

app = App()

_START_IN = "3d"  # unless the option says otherwise
KeyLen = StrEnum("KeyLen", {"SHORT": "1024", "LONG": "2048"})  # in bits (interface 2.3)
RetiredFormat = StrEnum("RetiredFormat", ["TABLE", "JSON", "NSUPDATE"])


@app.command(
    "dkimctl rotate > successors.yaml",
    "dkimctl rotate | dkimctl register -",
    "dkimctl rotate '*.example.com' --older-than 90d --start-in 7d --selector s%Y%m",
    "dkimctl rotate --retired",
    "dkimctl rotate --retired --format nsupdate --output remove.txt && "
    "nsupdate -k KEYFILE remove.txt",
)
def rotate(
    ctx: typer.Context,
    selection: selected.SelectionArgument = None,
    older_than: Annotated[str | None, option("--older-than TIME",
        "Replace keys older than this (default: those that `dkimctl list` says are due).")] = None,
    start_in: Annotated[str, option("--start-in TIME",
        "Time until the new keys sign.")] = _START_IN,
    template: Annotated[str | None, option("--selector TEMPLATE",
        "New selectors (default: s%Y%m%d); {domain} is a hash.")] = None,
    key_len: Annotated[KeyLen | None, option("--key-len BITS",
        f"Length of the new keys: {' or '.join(KeyLen)} (default: 2048).")] = None,
    retired: Annotated[bool, option("--retired",
        "Instead, list old records that may be removed from DNS.")] = False,
    fmt: Annotated[RetiredFormat | None, option("--format -f FORMAT",
        f"With --retired: {', '.join(RetiredFormat)} (default: table, or json in a pipe).")] = None,
    zone: Annotated[list[str] | None, option("--zone ZONE",
        "With --format nsupdate: a zone of your DNS; repeatable.")] = None,
    no_check: Annotated[bool, option("--no-check",
        "With --retired: rely on earlier checks of DNS.")] = False,
    max_age: Annotated[str | None, option("--max-age-of-check TIME",
        f"With --no-check: their longest age (default: {selected.MAX_AGE_OF_CHECK}).")] = None,
    assume_successors: options.AssumeSuccessorsOption = False,
    output: options.OutputOption = None,
) -> int:  # fmt: skip
    """Print specs (YAML) for the successors of old keys.

    They are for `register`; nothing is sent. `dkimctl rotate run` does everything that is due, and
    `dkimctl list` shows where each key is.

    With --retired, list the old records that may be removed from DNS. Their successors are checked
    in DNS first, and the service is asked for its time.
    """
    session = open_session(ctx)
    for_new = {"--older-than": older_than is not None, "--start-in": start_in != _START_IN,
               "--selector": template is not None, "--key-len": key_len is not None}  # fmt: skip
    for_retired = {"--format": fmt, "--zone": zone, "--no-check": no_check,
                   "--max-age-of-check": max_age,
                   "--assume-successors": assume_successors}  # fmt: skip
    for name, is_given in (for_new if retired else for_retired).items():
        if is_given:
            raise UsageError(
                f"{name} has no effect {'with' if retired else 'without'} --retired",
                hint="--retired lists old records; without it, rotate prints the specs of new keys",
            )
    picked = selected.read_selection(session, selection)
    if not retired:
        age = None
        if older_than is not None:
            age = read_duration("--older-than", older_than, may_be_zero=True)
        now = datetime.now(UTC)
        # Not zero, so that there is time to publish the new records.
        start = start_date(now, read_duration("--start-in", start_in))
        bits, selectors = int(key_len) if key_len else None, None
        if template is not None:
            selectors = selector_template(template, now.astimezone(), option="--selector")
        policy = RotationPolicy(age, start, bits, selectors, session.config.rotation)
        return _print_successors(session, picked, policy, now, output)
    fmt = read_format(RetiredFormat, fmt, output)
    if zone and fmt is not RetiredFormat.NSUPDATE:
        raise UsageError("--zone has no effect with this format", hint="it is for nsupdate")
    output_options = OutputOptions(
        Format(fmt) if fmt else default_format(output, for_machines=Format.JSON), ttl=None,
        zones=[read_zone("--zone", name) for name in zone or ()], output=output,
    )  # fmt: skip
    statuses = selected.review_retired(
        session, picked, look=not no_check, max_age=max_age, assume_successors=assume_successors
    )
    results = retired_results(statuses)
    found = at_targets(results, output_options.fmt, session.config.pool_of)
    write_results(found, output_options, session.reporter)
    unusable = [named(each.registration) for each in results if each.outcome is Outcome.UNUSABLE]
    if unusable and output_options.fmt is Format.NSUPDATE:
        session.reporter.warn(
            f"left out because their records are unusable: {few(unusable)}",
            hint="look for their records in DNS; `dkimctl ledger forget` removes them from the "
            "ledger",
            code=Outcome.UNUSABLE,
        )
    status = selected.report_not_retired(session, statuses)
    if results:
        assumed = ["--assume-successors"] if assume_successors else []
        list_them = next_steps.rotate_retired(selection or (), *assumed)
        session.reporter.note(
            f"dkimctl: retired: {len(results)}; the service does not say when it stops using a "
            "selector: before you delete its record, check that mail sent now is signed with the "
            "new selector (s=)"
        )
        file = new_name("remove.txt")
        delete = f"{list_them} --format nsupdate --output {file} && nsupdate -k KEYFILE {file}"
        is_by_run = session.has_dns_targets and not assumed
        if is_by_run:
            delete = "dkimctl rotate run"
        if is_by_run and session.has_timer:
            session.reporter.note("dkimctl: the timer deletes them")
        elif output_options.fmt is not Format.NSUPDATE:
            session.reporter.note(f"dkimctl: next, to delete: `{delete}`")
        file = new_name("retired.json")
        session.reporter.note(
            f"dkimctl: next, to check that they are gone: `{list_them} --output {file} && "
            f"dkimctl check-dns --from {file} --expect-absent`"
        )
        options_of_forget = (*assumed, "--output", new_name("forgotten.json"))
        forget = next_steps.command("ledger forget", selection or ["*"], *options_of_forget)
        session.reporter.note(f"dkimctl: and then: {forget}")
    return worst_check([status, selected.warn_unmatched(session, picked)])


def _print_successors(
    session: Session, selection: Selection, policy: RotationPolicy, now: datetime,
    output: Path | None,
) -> int:  # fmt: skip
    """Print the specs; say how many domains are due, and warn about others."""
    reporter, which = session.reporter, "that are due"
    nothing = "nothing is due: `dkimctl list --sort-by due` says when"
    if policy.older_than is not None:
        which = f"older than {format_duration(policy.older_than)}"
        nothing = f"nothing is due: no domain's newest key is {which} and already signing"
    ledger = session.open_ledger(for_writing=False)
    rotation = plan_rotation(ledger, selection, policy, now)
    if rotation is None:
        selected.require_empty(session, selection)
        rotation = Rotation([], [], [])
    status = ExitCode.OK
    if any(session.config.pool_of(spec.sign_domain) for spec in rotation.successors):
        from dkimctl.cli.publication import with_pool_selectors  # DNS, which others do not need

        assigned = with_pool_selectors(session, rotation.successors, ledger)
        rotation = rotation._replace(successors=[spec for spec, error in assigned if not error])
        failed = [(spec.sign_domain, error) for spec, error in assigned if error]
        status = worst(error.exit_code for _, error in failed)
        warn_alike(reporter, (
            ("; ".join(filter(None, (f"{name} gets no successor: {error.message}", error.hint))),
             f"no successor: {without_names(error.message, name, None)}", "blocked")
            for name, error in failed
        ))  # fmt: skip
    comment = f"Successors of keys {which}, for `dkimctl register FILE`"
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
    if rotation.successors:
        register = "`dkimctl register FILE`"
        if output is not None:
            register = next_steps.command("register", [output])
        elif sys.stdout.isatty():
            file = new_name("successors.yaml")
            command = next_steps.same_command(more=("--output", file))
            register = f"`{command} && dkimctl register {file}`"
        reporter.note(
            f"dkimctl: due: {len(rotation.successors)}; signing with the new keys starts at "
            f"{policy.start_date}: publish their records before then"
        )
        reporter.note(f"dkimctl: next: {register}")
        reporter.note(
            "dkimctl: when the grace period after that start is over: `dkimctl rotate --retired` "
            "lists the old records to remove"
        )
    elif status is ExitCode.OK:
        reporter.note(f"dkimctl: {nothing}")
    return worst([status, selected.warn_unmatched(session, selection)])


def render_spec_yaml(specs: Sequence[DomainSpec], comment: str) -> Iterator[str]:
    """A comment line, then a list of entries without unset fields; `[]` for no specs."""
    yield f"# {comment}\n"
    for spec in specs:
        fields = ((key, getattr(spec, key)) for key in ENTRY_FIELDS)
        lines = (f"{key}: {yaml_scalar(value)}\n" for key, value in fields if value is not None)
        yield "- " + "  ".join(lines)
    if not specs:
        yield "[]\n"
