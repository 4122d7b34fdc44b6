"""What `rotate status` shows: where each key is, and what is urgent."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output.destination import table_layout, write_chunks
from dkimctl.cli.output.results import LONG_TABLE
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.output.urgent import warn_of_urgent_keys
from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import ExitCode
from dkimctl.models.key_status import KeyStage, KeyStatus, NextAction
from dkimctl.models.registration import named
from dkimctl.render.formats import open_stage_renderer
from dkimctl.render.renderer import KeyFormat, Renderer, TableLayout, render_all
from dkimctl.text.escaping import few
from dkimctl.text.grouping import MAX_ALIKE

_BY_RUN = (NextAction.REGISTER, NextAction.REMOVE)
_LAST = datetime.max.replace(tzinfo=UTC)

if TYPE_CHECKING:
    from dkimctl.cli.session import Session


def show_stages(
    session: Session,
    statuses: Sequence[KeyStatus],
    fmt: KeyFormat | None,
    output: Path | None,
    *,
    now: datetime,
    is_timeline: bool,
) -> ExitCode:
    """Write the statuses to stdout or a file; returns the exit code. Raises OutputError.

    Without a format it is a table that leaves rows out where there are many, unless --verbose is
    given. `is_timeline`: draw a timeline instead, with a line at `now`.
    """
    reporter = session.reporter
    shows_all = fmt is not None or reporter.verbose
    is_cut = output is None and sys.stdout.isatty() and len(statuses) > LONG_TABLE and not shows_all
    layout = table_layout(reporter, output)._replace(
        only_attention=reporter.quiet and not shows_all,
        most_alike=MAX_ALIKE if is_cut else None,
    )
    shown = [status._replace(note=reporter.complete(status.note)) for status in statuses]
    if is_timeline:
        shown = _by_domain(shown)
    chunks = render_all(_open_renderer(fmt, layout, now if is_timeline else None), shown)
    write_chunks(chunks, output, is_paged=fmt in (None, KeyFormat.TABLE))
    urgencies = ((Urgency(status.urgency), status) for status in statuses)
    warn_of_urgent_keys(reporter, urgencies, by_target=session.has_dns_targets)
    overdue = overdue_of(statuses, now - session.config.rotation.lead)
    _warn_of_overdue(reporter, overdue)
    counts = Counter(str(status.stage) for status in statuses)
    text = ", ".join(f"{stage} {counts[stage]}" for stage in KeyStage if counts[stage])
    reporter.summarize(text or "nothing to show", counts)
    is_bad = overdue or any(status.urgency for status in statuses)
    return ExitCode.NO if is_bad else ExitCode.OK


def _by_domain(statuses: Sequence[KeyStatus]) -> list[KeyStatus]:
    """The keys of each domain together, in the order of their starts; what is due first decides."""
    by_domain: dict[str, list[KeyStatus]] = {}
    for status in statuses:
        by_domain.setdefault(status.sign_domain, []).append(status)
    return [one for of_domain in by_domain.values() for one in sorted(of_domain, key=_begins)]


def _begins(status: KeyStatus) -> datetime:
    return status.dates.starts_at or status.dates.created_at or _LAST


def overdue_of(statuses: Sequence[KeyStatus], since: datetime) -> list[KeyStatus]:
    """What `rotate run` should have done before this time."""
    return [
        status
        for status in statuses
        if status.action in _BY_RUN and status.due is not None and status.due < since
    ]


def _warn_of_overdue(reporter: Reporter, overdue: Sequence[KeyStatus]) -> None:
    """A timer that does not run sends no notice."""
    if overdue:
        since = min(status.due for status in overdue if status.due is not None)
        reporter.warn(
            f"overdue, since {since:%Y-%m-%d} at the earliest: {len(overdue)} "
            f"({few([named(status) for status in overdue])})",
            hint="check that the timer runs `dkimctl rotate run` once a day, what it says, and "
            "that `limit` of `rotation` is not too low",
            code="overdue",
        )


def _open_renderer(
    fmt: KeyFormat | None, layout: TableLayout, timeline_at: datetime | None
) -> Renderer[KeyStatus]:
    if timeline_at is None:
        return open_stage_renderer(fmt or KeyFormat.TABLE, layout)
    from dkimctl.render.timeline import TimelineRenderer

    return TimelineRenderer(layout, timeline_at)
