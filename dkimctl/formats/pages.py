"""HTML pages for people without a terminal: each is one file, and fetches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dkimctl.formats import overview_text as texts
from dkimctl.formats.overview_text import MONTH, MOST_DOMAINS, Milestone, Overview
from dkimctl.text import printable, readable

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_DAYS = 20  # rows of a week or month
_PAST, _FUTURE = timedelta(days=365), timedelta(days=180)  # that are drawn at most
_WIDTH = 600.0  # of the bars, in units of the picture


def environment(package: str) -> Environment:
    """The templates of `package`, which escape text; a page extends our base.html.

    It fetches nothing and runs no script: its security policy forbids both.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["printable"] = printable
    return templates


def overview_page(overview: Overview, profile: str) -> str:
    """The page, for the keys of a profile."""
    now = overview.now
    shown = texts.first_domains(overview.first, MOST_DOMAINS)
    scale = texts.Scale(shown, now, _PAST, _FUTURE, least=MONTH)

    def x(time: datetime) -> float:
        return round(scale.share(time) * _WIDTH, 1)

    def event_rows(events: Sequence[Milestone]) -> Sequence[texts.Row]:
        days = [(str(at.date()) if at >= now else "overdue", what, key) for at, what, key in events]
        return texts.rows_of_events(days, _MOST_DAYS)

    ticks = []  # the first days of months
    year, month = scale.first.year, scale.first.month
    while (time := datetime(year, month, 1, tzinfo=UTC)) <= scale.last:
        if time >= scale.first:
            ticks.append({"x": x(time), "label": f"{time:%Y-%m}"})
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    rows = []
    for status in shown:
        bars = [
            {"phase": phase, "x": x(begin), "width": max(round(x(end) - x(begin), 1), 2.0)}
            for phase, begin, end in texts.spans_of(status, now)
        ]
        name, selector = readable(status.sign_domain), status.selector or ""
        is_urgent = bool(status.urgency)
        rows.append({"domain": name, "selector": selector, "is_urgent": is_urgent, "bars": bars,
                     "stage": str(status.stage)})  # fmt: skip
    template = environment(__package__).get_template("overview.html")
    return template.render(
        overview=overview, profile=profile, name_of=readable, rows=rows, ticks=ticks,
        week=event_rows(overview.week), week_length=texts.WEEK,
        month=event_rows(overview.month), month_length=MONTH,
        left_out=overview.known - len(shown), today=x(now), phases=[*texts.PHASES],
        width=_WIDTH, most=max((band.keys for band in overview.ages), default=0) or 1,
    )  # fmt: skip
