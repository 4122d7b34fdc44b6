"""Report the changes to DNS that failed, those of a zone together if they failed alike."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import DkimctlError
from dkimctl.publishing.plan import PlanItem
from dkimctl.text.escaping import few
from dkimctl.text.grouping import MAX_ALIKE, counted, without_names


def report_failures(reporter: Reporter, items: Iterable[PlanItem]) -> None:
    """Report the error of each item; with --verbose or as JSON, of all zones."""
    groups: dict[tuple[str, str, str], list[PlanItem]] = {}
    for item in items:
        kind = without_names(item.reason, *item.key)
        groups.setdefault((item.target, item.zone, kind), []).append(item)
    alike = list(groups.values())
    shown = alike if reporter.lists_all else alike[:MAX_ALIKE]
    for group in shown:
        reporter.error(_error_of(group))
    if left := len(alike) - len(shown):
        reporter.error(DkimctlError(f"and {left:,} more (--verbose lists all)"))


def _error_of(group: list[PlanItem]) -> DkimctlError:
    """One error for items that failed alike in a zone."""
    first, *more = group
    message = first.reason
    if more:
        if any(item.reason != message for item in more):
            message = without_names(message, *first.key)
        names = few([item.fqdn for item in group])
        message = f"{counted(len(group), 'record')} ({names}): {message}"
    elif first.fqdn not in message:
        message = f"{first.fqdn}: {message}"
    error = DkimctlError(message, hint=first.error.hint if first.error else "")
    error.code = first.error.code if first.error else error.code
    return error
