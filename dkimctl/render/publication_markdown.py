"""A plan of what to change in DNS as Markdown, for a pull request.

All text of others stands in code, on one line: nothing in it acts as Markdown or HTML.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dkimctl.publishing.items import PlanItem, Step
from dkimctl.render.markdown import code, fenced
from dkimctl.render.publication_table import totals
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import Grouping, and_more


class PublicationMarkdownRenderer(Renderer[PlanItem]):
    """A heading with totals; for each zone, a list of its changes with the old and new values.

    Of each step, `most_alike` are listed, and the rest counted: a comment at GitHub may have
    65,536 characters. None: all are.
    """

    def __init__(self, most_alike: int | None = None) -> None:
        self._items: list[PlanItem] = []
        self._grouping = Grouping[Step](most_alike)

    def add(self, item: PlanItem) -> str:
        self._items.append(item)
        return ""

    def end(self) -> Iterator[str]:
        yield f"### DKIM records: {totals(self._items) or 'nothing to do'}\n"
        for _, group in itertools.groupby(self._items, lambda item: (item.zone, item.target)):
            items = list(group)
            shown = [
                item
                for item in items
                if item.step is not Step.KEEP and self._grouping.shows(item.step)
            ]
            if shown:
                yield f"\n#### {_place(items[0])}: {totals(items)}\n\n"
                for item in shown:
                    yield from _entry(item)
        for step, count in self._grouping.rest():
            yield f"\n{and_more(count, step)} (`--verbose` lists all)\n"


def _place(item: PlanItem) -> str:
    if not item.target:
        return "No DNS target"
    zone = code(item.zone) if item.zone else "Unknown zone"
    return f"{zone} at {code(item.target)}"


def _entry(item: PlanItem) -> Iterator[str]:
    state = ", done" if item.is_applied else ""
    in_dns = f", in DNS: {item.check.finding.verdict}" if item.check else ""
    yield f"- **{item.step}** {code(item.fqdn)}{state}{in_dns}\n"
    if item.reason:
        yield f"  {code(item.reason)}\n"
    if lines := list(_difference(item)):
        yield fenced(lines, "diff", indent="  ")


def _difference(item: PlanItem) -> Iterator[str]:
    if item.change is None:
        return
    for value in item.change.before.values:
        sign = " " if item.step is Step.BLOCKED else "-"
        yield f"{sign} {printable(value)}"
    if item.step is not Step.BLOCKED and item.change.value is not None:
        yield f"+ {printable(item.change.value)}"
