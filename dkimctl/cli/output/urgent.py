"""Warnings about keys that sign, or soon will, and are not in DNS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.streams import Reporter
from dkimctl.dns.verdicts import Urgency
from dkimctl.models.keys import KeyStatus
from dkimctl.models.registration import Registration, named
from dkimctl.text.escaping import few

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
    selection: Sequence[str],
    *,
    by_target: bool,
    is_written: bool = False,
) -> None:
    """Warn about the keys of each urgency, whose names are given, and name the next command.

    `selection` are the words that select them; `by_target`: `publish` can publish what is missing;
    `is_written`: it has.
    """
    wait = next_steps.wait_for(selection)
    publish = next_steps.publish(selection, by_target=by_target)
    for urgency, text in WARNINGS.items():
        if names := names_of.get(urgency):
            if urgency is Urgency.PARTLY:
                hint = f"wait until all servers have it: {wait}"
            elif is_written:
                hint = next_steps.wait_for_transfers(selection)
            else:
                hint = f"publish the records: {publish}, then {wait}"
            reporter.warn(f"{text}: {len(names)} ({few(names)})", hint=hint, code=urgency)


def warn_of_urgent_keys(
    reporter: Reporter,
    urgencies: Iterable[tuple[Urgency, Registration | KeyStatus]],
    *,
    by_target: bool,
) -> None:
    """Do the same for keys, each with its urgency, in commands that select their domains."""
    names_of: dict[Urgency, list[str]] = {}
    domains = []
    for urgency, key in urgencies:
        if urgency:
            names_of.setdefault(urgency, []).append(named(key))
            domains.append(key.sign_domain)
    warn_of_urgent(reporter, names_of, next_steps.select_domains(domains), by_target=by_target)
