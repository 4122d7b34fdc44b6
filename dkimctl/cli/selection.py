"""The SELECTION argument: which registrations a command is about."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, NegativeAnswer
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import Outcome, Registration, Result
from dkimctl.registration import outcomes

if TYPE_CHECKING:
    from dkimctl.publication.verdicts import Check

SelectionArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTION]...",
        help="Domain names, globs such as '*.example.com', spec files (default: everything).",
    ),
]


def read_selection(session: Session, words: Sequence[str] | None) -> Selection:
    """What `words` select. Raises UsageError for an invalid name or spec file."""
    return Selection(words or [], read_specs=session.read_specs, to_domain=_to_domain)


def registered(session: Session, selection: Selection) -> Iterator[Result]:
    """The results of the selected registrations, with outcomes determined from the ledger.

    Raises NegativeAnswer if none is selected.
    """
    exists = Outcome.EXISTS  # looked up once: member access is slow in Python 3.11
    ours = session.open_ledger(for_writing=False).ours()
    results = (outcomes.verified(registration, exists) for registration in selection.pick(ours))
    first = list(itertools.islice(results, 1))
    if not first:
        raise nothing_registered(session, selection)
    return itertools.chain(first, results)


def read_saved_results(
    path: str, selection: Selection, *, on_fault: Callable[[str], None]
) -> Iterator[Result]:
    """The results of the selected registrations of a file, with outcomes determined from them."""
    from dkimctl.registration.saved_results import read_saved_results, results_of

    saved = read_saved_results(path)
    for fault in saved.faults:
        on_fault(f"{path}: {fault}")
    return results_of(selection.pick(saved.registrations))


def nothing_registered(session: Session, selection: Selection) -> NegativeAnswer:
    """The error to end with if the ledger has nothing that is selected."""
    unmatched = selection.unmatched()
    return NegativeAnswer(
        f"nothing is registered in the profile {session.profile.name}"
        + (f" that matches {few(unmatched)}" if unmatched else ""),
        hint="run `dkimctl register FILE` first; `dkimctl show-dns` shows everything registered",
    )


def warn_unmatched(session: Session, selection: Selection) -> ExitCode:
    """Warn about words that select nothing; that is exit code 1."""
    unmatched = selection.unmatched()
    for word in unmatched:
        session.reporter.warn(f"{word} is not registered", code="not_registered")
    return ExitCode.NO if unmatched else ExitCode.OK


def named(item: Registration | Check) -> str:
    """The name of a registration in messages."""
    return item.sign_domain + (f" (selector {item.selector})" if item.selector else "")


def few(words: Sequence[str]) -> str:
    """The first five."""
    return ", ".join(words[:5]) + (", …" if len(words) > 5 else "")


def _to_domain(word: str) -> str:
    from dkimctl.specs.names import parse_domain

    return parse_domain(word)
