"""The SELECTION argument: which registrations a command is about."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.completion import complete_selection
from dkimctl.cli.options import read_duration
from dkimctl.cli.output.streams import AlikeWarnings, warn_unreadable
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, NegativeAnswer, UsageError
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import Outcome, Result
from dkimctl.registration import outcomes
from dkimctl.text.escaping import few

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import RetirementPolicy

MAX_AGE_OF_CHECK = "24h"  # of one that shows a successor in DNS

SelectionArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTION]...",
        autocompletion=complete_selection,
        help="Domain names, globs such as '*.example.com', spec files (default: everything).",
    ),
]


def read_selection(session: Session, words: Sequence[str] | None) -> Selection:
    """What `words` select. Raises UsageError for an invalid name or spec file."""
    return Selection(words or [], read_specs=session.read_specs, to_domain=_to_domain)


def registered_results(session: Session, selection: Selection) -> Iterator[Result]:
    """The results of the selected registrations, with outcomes determined from the ledger.

    Raises NegativeAnswer like `require_empty` if none is selected.
    """
    exists = Outcome.EXISTS  # looked up once: member access is slow in Python 3.11
    ours = session.open_ledger(for_writing=False).ours()
    results = (outcomes.verified(registration, exists) for registration in selection.pick(ours))
    first = list(itertools.islice(results, 1))
    if not first:
        require_empty(session, selection)
    return itertools.chain(first, results)


def saved_results(
    session: Session, path: str, selection: Selection
) -> tuple[Iterator[Result], ExitCode]:
    """The results of the selected registrations of a file, with outcomes determined from them.

    Warns about items that cannot be read; that is exit code 1.
    """
    from dkimctl.registration.saved_results import read_saved_results, results_of

    saved = read_saved_results(path)
    warn_unreadable(session.reporter, path, saved.faults)
    results = results_of(selection.pick(saved.registrations), saved.retired)
    return results, ExitCode.NO if saved.faults else ExitCode.OK


def require_empty(session: Session, selection: Selection) -> None:
    """To be called if the ledger has nothing that is selected.

    Spec files without specs select nothing: then there is nothing to do. Raises NegativeAnswer
    for any other selection.
    """
    if selection.is_empty:
        return
    unmatched = selection.unmatched()
    raise NegativeAnswer(
        f"nothing is registered in the profile {session.profile.name}"
        + (f" that matches {few(unmatched)}" if unmatched else ""),
        hint=_file_hint(unmatched)
        or "run `dkimctl register FILE` first; `dkimctl show-dns` shows everything registered",
    )


def warn_unmatched(session: Session, selection: Selection) -> ExitCode:
    """Warn about words that select nothing; that is exit code 1."""
    unmatched = selection.unmatched()
    warnings = AlikeWarnings(session.reporter)
    for word in unmatched:
        warnings.warn(f"{word} is not registered", kind="not registered", code="not_registered")
    warnings.close()
    return ExitCode.NO if unmatched else ExitCode.OK


def _to_domain(word: str) -> str:
    from dkimctl.specs.names import parse_domain

    try:
        return parse_domain(word)
    except UsageError as error:
        if hint := _file_hint([word]):
            raise UsageError(error.message, hint=hint) from None
        raise


def _file_hint(words: Sequence[str]) -> str:
    """For words that select nothing, and are the names of files here; else ""."""
    if not any(map(os.path.exists, words)):
        return ""
    return (
        "it is a file here: name a spec file as in ./list.txt, and put globs in quotes, as in "
        "'*.example.com'"
    )


def read_retirement_policy(
    session: Session, now: datetime, *, assume_successors: bool, max_age: str | None = None
) -> RetirementPolicy:
    """When a key is retired; `max_age` is that of a check of its successor. Raises UsageError."""
    from dkimctl.rotation.retirement import RetirementPolicy

    age = read_duration("--max-age-of-check", max_age or MAX_AGE_OF_CHECK)
    grace = session.config.rotation.grace
    return RetirementPolicy(now, now - age, assume_successors, grace=grace)
