"""Warnings of keys that sign, or soon will, and are not in DNS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dkimctl.cli import next_steps
from dkimctl.cli.report import Reporter
from dkimctl.dns.verdicts import Urgency
from dkimctl.models import Registration, named
from dkimctl.text import few

if TYPE_CHECKING:
    from dkimctl.rotation.life import Key

WARNINGS = {
    Urgency.SIGNING: "signing now without DNS, so receivers cannot verify the mail",
    Urgency.PARTLY: (
        "signing now, but some servers lack it, so receivers that ask those cannot verify the mail"
    ),
    Urgency.SOON: "signing starts soon, but DNS is not ready",
}


def warn_of_urgent(
    reporter: Reporter,
    names_of: Mapping[Urgency, Sequence[str]],
    selection: Sequence[str],  # the words that select them
    *,
    by_target: bool,  # `publish` can publish what is missing
    is_written: bool = False,  # it has
) -> None:
    """Warn about the keys of each urgency, whose names are given, and name the next command."""
    wait = next_steps.wait_for(selection)
    for urgency, text in WARNINGS.items():
        if names := names_of.get(urgency):
            if urgency is Urgency.PARTLY:
                hint = f"wait until all servers have it: {wait}"
            elif is_written:
                hint = next_steps.wait_for_transfers(selection)
            else:
                command = next_steps.publish(selection, by_target=by_target)
                hint = f"publish the records: {command}, then {wait}"
            reporter.warn(f"{text}: {len(names)} ({few(names)})", hint=hint, code=urgency)


def warn_of_urgent_keys(
    reporter: Reporter, urgencies: Iterable[tuple[Urgency, Registration | Key]], *, by_target: bool
) -> None:
    """Do the same for keys, each with its urgency, in commands that select their domains."""
    urgent = [(urgency, key) for urgency, key in urgencies if urgency]
    names = {item: [named(key) for urgency, key in urgent if urgency is item] for item in Urgency}
    domains = next_steps.select_domains(key.sign_domain for _, key in urgent)
    warn_of_urgent(reporter, names, domains, by_target=by_target)
