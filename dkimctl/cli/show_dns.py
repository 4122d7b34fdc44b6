"""`dkimctl show-dns`: the DNS records of what is registered."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from dkimctl import outcomes
from dkimctl.cli.layout import Layout
from dkimctl.cli.options import examples, with_session
from dkimctl.cli.results import show, worst
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, NegativeAnswer
from dkimctl.ledger import Ledger
from dkimctl.models import DomainSpec, Result
from dkimctl.render.publishable import publishable
from dkimctl.selecting import Selection

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "dkimctl show-dns",
        "dkimctl show-dns --format zone > dkim.zone",
        "dkimctl show-dns '*.example.com' --format json",
        "dkimctl show-dns example.com --format value",
    )
)
@with_session
def show_dns(
    session: Session,
    layout: Layout,
    selection: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SELECTION]...",
            help="Domain names, globs such as '*.example.com', spec files; none means all.",
        ),
    ] = None,
) -> int:
    """Show the DNS records of what is registered, from the ledger; nothing is sent."""
    chosen = Selection(selection or [], read_specs=session.read_specs, to_domain=_to_domain)
    results = _registered(session.open_ledger(for_writing=False), chosen)
    first = list(itertools.islice(results, 1))
    if not first:
        raise _nothing(session, chosen.unmatched())
    chosen_results = itertools.chain(first, results)
    shown = show(_inside(chosen_results, layout), layout, session.reporter)
    unmatched = chosen.unmatched()
    for word in unmatched:
        session.reporter.warn(f"{word} is not registered", code="not_registered")
    return worst([shown.status, ExitCode.NO if unmatched else ExitCode.OK])


def _inside(results: Iterator[Result], layout: Layout) -> Iterable[Result]:
    """The results, once it is certain that all their records are in the zones that are named."""
    if not layout.has_zones:
        return results
    found = list(results)
    records = filter(None, map(publishable, found))
    layout.require_inside(record.fqdn for record in records)
    return found


def _to_domain(word: str) -> str:
    from dkimctl.specs import parse_domain

    return parse_domain(word)


def _registered(ledger: Ledger, chosen: Selection) -> Iterator[Result]:
    ours = (found for found in ledger.all() if not found.is_taken)
    for registration in chosen.pick(ours):
        # Nothing is asked for here, so nothing can differ from it.
        asked = DomainSpec(registration.sign_domain)
        yield outcomes.of_registered(asked, registration)


def _nothing(session: Session, unmatched: list[str]) -> NegativeAnswer:
    what = ", ".join(unmatched[:5]) + (", …" if len(unmatched) > 5 else "")
    return NegativeAnswer(
        f"nothing is registered in the profile {session.profile.name}"
        + (f" that matches {what}" if what else ""),
        hint="run `dkimctl register FILE` first; `dkimctl show-dns` alone shows all there is",
    )
