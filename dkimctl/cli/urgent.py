"""Warnings of keys that sign, or soon will, and are not in DNS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dkimctl.cli import next_steps
from dkimctl.cli.report import Reporter
from dkimctl.dns.verdicts import Urgency
from dkimctl.text import few

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
