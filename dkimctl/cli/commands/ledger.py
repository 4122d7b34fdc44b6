"""`dkimctl ledger`: import registrations into the ledger, forget them, or copy it elsewhere."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.addresses import parse_database_url
from dkimctl.cli import options
from dkimctl.cli.options import TableOrJson, argument, complete_selection, option, read_new_file
from dkimctl.cli.output import OutputOptions, default_format, read_format
from dkimctl.cli.report import warn_alike, warn_unreadable
from dkimctl.cli.results import write_results
from dkimctl.cli.selected import read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, NegativeAnswer, UsageError, naming
from dkimctl.formats.renderer import Format
from dkimctl.ledger.ledger import summed
from dkimctl.models import EventKind, Outcome, named
from dkimctl.registration.saved_results import import_results, read_saved_results, results_of
from dkimctl.rotation.retirement import RetirementPolicy, as_result, known_keys, not_seen_gone
from dkimctl.text import counted, few, without_names

app = options.App(
    "dkimctl ledger import result.json",
    "dkimctl ledger forget example.com > forgotten.json",
    "dkimctl ledger copy --to postgresql://dkimctl@db.example.com/dkimctl",
    help="Import registrations into the ledger, forget retired ones, or copy it.",
)


@app.command(
    "dkimctl ledger import result.json",
    "ssh other dkimctl show-dns --format json | dkimctl ledger import -",
    name="import",
)
def import_(
    ctx: typer.Context, file: Annotated[str, argument("FILE", options.SAVED_RESULT)]
) -> int:
    """Import the registrations of a saved result.

    They are not sent again then. Registrations that are already in the ledger do not change.
    Nothing is sent.
    """
    session = open_session(ctx)
    reporter = session.reporter
    saved = read_saved_results(file)
    with session.lock_account():
        ledger = session.open_ledger(for_writing=True)
        ledger.check()
        plan = import_results(ledger, results_of(saved.items, saved.retired))
    warn_unreadable(reporter, file, saved.faults)
    left_out: dict[Outcome, list[str]] = {}  # what is not a registration of this account
    for result in plan.skipped:
        text = f"{named(result.registration)}: {result.reason}"
        left_out.setdefault(result.outcome, []).append(text)
    for outcome, texts in left_out.items():
        reporter.warn(f"left out, {outcome}: {len(texts)} ({few(texts)})", code=outcome)
    warn_alike(reporter, (
        (f"{named(registration)}: {reason}", without_names(reason, *registration.key), "conflict")
        for registration, _, reason, _ in plan.conflicts
    ))  # fmt: skip
    counts = {"imported": len(plan.new), "already there": len(plan.known),
              "in conflict": len(plan.conflicts), "left out": len(plan.skipped)}  # fmt: skip
    parts = [f"{word} {count}" for word, count in counts.items() if count]
    reporter.note(f"dkimctl: {', '.join(parts) or 'nothing to import'}")
    return ExitCode.NO if saved.faults or plan.conflicts or plan.skipped else ExitCode.OK


@app.command(
    "dkimctl ledger forget example.com > forgotten.json",
    "dkimctl ledger forget '*' --format table",
    "dkimctl ledger forget --force sold.example",
    "dkimctl ledger import forgotten.json",
)
def forget(
    ctx: typer.Context,
    words: Annotated[list[str], argument("SELECTION...",
        "Domain names, globs such as '*.example.com', spec files.",
        autocompletion=complete_selection)],
    force: Annotated[bool, option("--force",
        "Forget the whole selection, retired or not.")] = False,
    still_published: Annotated[bool, option("--still-published",
        "Also forget those whose records may still be in DNS.")] = False,
    assume_successors: options.AssumeSuccessorsOption = False,
    fmt: Annotated[TableOrJson | None, option("--format -f FORMAT",
        f"{', '.join(TableOrJson)} (default: table, or json in a pipe).")] = None,
    output: options.OutputOption = None,
) -> int:  # fmt: skip
    """Remove retired registrations from the ledger.

    `rotate --retired` lists them. Prints the forgotten registrations; `ledger import` reads the
    JSON back. Nothing is forgotten until `check-dns` has found all of their records gone from DNS.
    Nothing is sent.
    """
    session = open_session(ctx)
    reporter = session.reporter
    fmt = read_format(TableOrJson, fmt, output)
    selection = read_selection(session, words)
    now = datetime.now(UTC)
    with session.lock_account():
        ledger = session.open_ledger(for_writing=True)
        ledger.check()
        known = known_keys(ledger.domains(), selection)
        if not known.selected:
            require_empty(session, selection)
        policy = RetirementPolicy(now, now, assume_successors, session.config.rotation)
        statuses = known.statuses(policy)
        forgotten = [status for status in statuses if force or status.is_over]
        if statuses and not forgotten:
            reasons = ((named(item.registration), item.reason) for item in statuses)
            warn_alike(reporter, (
                (f"{name} is not retired: {reporter.complete(why)}", "not retired", "not_retired")
                for name, why in reasons
            ))  # fmt: skip
            raise NegativeAnswer(
                f"none of the {len(statuses)} selected registrations is retired; nothing was "
                "forgotten",
                hint="`dkimctl rotate --retired` lists the retired ones; --force forgets the "
                "others as well, such as those of a domain that was sold",
            )
        if not still_published and (in_dns := not_seen_gone(forgotten)):
            names = [f"{name}: {verdict}" for name, verdict in in_dns.items()]
            raise NegativeAnswer(
                f"may still be in DNS: {len(names)} ({few(names)}); nothing was forgotten",
                hint="delete the records and run `dkimctl check-dns DOMAIN`, or forget them with "
                "--still-published",
            )
        # First, so that nothing is lost: OutputError if it does not arrive.
        chosen = Format(fmt) if fmt else default_format(output, for_machines=Format.JSON)
        output_options = OutputOptions(chosen, output=output)
        write_results(map(as_result, forgotten), output_options, reporter, must_arrive=True)
        # The selector of a retired key is never used again.
        over = [status for status in forgotten if status.is_over]
        successor_of = {status.registration: status.successors[0].selector for status in over}
        ledger.close_keys(successor_of, EventKind.FORGOTTEN)
        others = [status.registration for status in forgotten if not status.is_over]
        ledger.forget(others)
    kept = len(statuses) - len(forgotten)
    rest = f", kept {kept} (not retired)" if kept else ""
    done = f"forgot {len(forgotten)}{rest}" if statuses else "nothing to do"
    reporter.note(f"dkimctl: {done}")
    if signing := [named(registration) for registration in others if registration.signs]:
        them = "it" if len(signing) == 1 else "them"
        reporter.warn(
            f"the service still has {counted(len(signing), 'key')}, and signs with {them} from the "
            f"start date: {few(signing)}",
            hint="it has no call to delete or disable a key: ask its operator to do that, and "
            "leave its record in DNS until then",
            code="still_signs",
        )
    if others:
        reporter.note(
            "dkimctl: also remove their entries from your spec files, or `dkimctl register` sends "
            "them again"
        )
    return warn_unmatched(session, selection)


@app.command(
    "dkimctl ledger copy --to postgresql://dkimctl@db.example.com/dkimctl",
    "dkimctl ledger copy --ledger postgresql://dkimctl@db.example.com/dkimctl --to new.db",
)
def copy(
    ctx: typer.Context,
    to: Annotated[str, option("--to URL|FILE",
        "PostgreSQL database, or file (ledger.db of a state directory).")],
) -> int:  # fmt: skip
    """Copy the account's part of the ledger to a PostgreSQL database, or to a file.

    The target must have nothing of the account; other accounts there, and the ledger that is
    copied, do not change. All or nothing is copied. Nothing is sent.
    """
    session = open_session(ctx)
    source = session.ledger_place
    with naming("--to"):
        if "://" in to:
            target = session.find_ledger_place(parse_database_url(to))
        else:
            target = read_new_file(to).absolute()
        if isinstance(target, Path) == isinstance(source, Path):
            other = "database" if isinstance(source, Path) else "file"
            hint = "--ledger names the ledger to copy, if it is not that of the profile"
            raise UsageError(f"the ledger {source} can only be copied to a {other}", hint=hint)
    # To read it, first: a file that is no ledger would be put aside.
    session.open_ledger(for_writing=False, place=target).verify()
    with ExitStack() as locks:
        # The file first, so that two copies in opposite directions do not wait for each other.
        for place in sorted((source, target), key=lambda place: not isinstance(place, Path)):
            locks.enter_context(session.lock_account("rotate", place))
            locks.enter_context(session.lock_account("register", place))
        ledger = session.open_ledger(for_writing=True)
        ledger.check()
        if not ledger.counts():
            hint = "choose the account with --profile, or the ledger to copy with --ledger"
            raise NegativeAnswer(f"the ledger {source} has nothing of this account", hint=hint)
        counts = session.open_ledger(for_writing=True, place=target).copy_from(ledger)
    session.reporter.note(f"dkimctl: copied {summed(counts)}")
    where = f"the profile {session.profile.name} of {session.config_file}"
    step = f"write `ledger: {target}` into {where}"
    if isinstance(target, Path):
        step = f"remove `ledger` from {where}, and use {target} as ledger.db of a state directory"
    session.reporter.note(
        f"dkimctl: next, on each machine: {step}; what you do after that is not in {source}"
    )
    return ExitCode.OK
