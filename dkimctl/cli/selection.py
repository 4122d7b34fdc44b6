"""The SELECTION of commands about what is registered, and what is said where it selects nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, NegativeAnswer
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import Outcome, Registration, Result
from dkimctl.registration import outcomes

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.publication.verdicts import Check
    from dkimctl.rotation.retirement import RetirementStatus

SelectionArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTION]...",
        help="Domain names, globs such as '*.example.com', spec files; none means all.",
    ),
]


def read_selection(session: Session, words: Sequence[str] | None) -> Selection:
    """What `words` select. Raises UsageError for one that is no name, or a file that is wrong."""
    return Selection(words or [], read_specs=session.read_specs, to_domain=_to_domain)


def pick_fates(session: Session, ledger: Ledger, chosen: Selection) -> list[RetirementStatus]:
    """What is to become of the registrations that are selected, as of now.

    Raises NegativeAnswer where there are none.
    """
    from dkimctl.rotation.retirement import fates

    known = list(ledger.all())
    picked = set(chosen.pick(known))
    if not picked:
        raise nothing_registered(session, chosen)
    found = fates(known, ledger.publications(), datetime.now(UTC))
    return [fate for fate in found if fate.registration in picked]


def registered(session: Session, chosen: Selection) -> Iterator[Result]:
    """What is selected of the ledger, each judged anew. Raises NegativeAnswer where nothing is."""
    there = Outcome.EXISTS  # looked up once: Python 3.11 takes its time to find a member
    ours = session.open_ledger(for_writing=False).ours()
    results = (outcomes.judged(found, there) for found in chosen.pick(ours))
    first = list(itertools.islice(results, 1))
    if not first:
        raise nothing_registered(session, chosen)
    return itertools.chain(first, results)


def read_saved_results(
    path: str, selection: Selection, *, on_fault: Callable[[str], None]
) -> Iterator[Result]:
    """What is selected of a saved result, each with a new verdict; needs no ledger."""
    from dkimctl.registration.saved_results import judged, read_saved

    saved = read_saved(path)
    for fault in saved.faults:
        on_fault(f"{path}: {fault}")
    return judged(selection.pick(saved.registrations))


def nothing_registered(session: Session, chosen: Selection) -> NegativeAnswer:
    """The error to end with where the ledger has nothing of what is selected."""
    unmatched = chosen.unmatched()
    return NegativeAnswer(
        f"nothing is registered in the profile {session.profile.name}"
        + (f" that matches {few(unmatched)}" if unmatched else ""),
        hint="run `dkimctl register FILE` first; `dkimctl show-dns` alone shows all there is",
    )


def tell_unmatched(session: Session, chosen: Selection) -> ExitCode:
    """Warn of words that select nothing, which is a no."""
    unmatched = chosen.unmatched()
    for word in unmatched:
        session.reporter.warn(f"{word} is not registered", code="not_registered")
    return ExitCode.NO if unmatched else ExitCode.OK


def named(found: Registration | Check) -> str:
    """How messages name a registration."""
    return found.sign_domain + (f" (selector {found.selector})" if found.selector else "")


def few(words: Sequence[str]) -> str:
    """The first five."""
    return ", ".join(words[:5]) + (", …" if len(words) > 5 else "")


def _to_domain(word: str) -> str:
    from dkimctl.specs.names import parse_domain

    return parse_domain(word)
