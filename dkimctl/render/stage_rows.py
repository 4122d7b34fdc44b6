"""What tables of the stages of keys have in common: which rows they show."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from dkimctl.models.key_status import KeyStatus
from dkimctl.render.grid import hidden_rows, wrapped
from dkimctl.render.renderer import Renderer, TableLayout
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import Grouping, and_more, without_names


class StageRows(Renderer[KeyStatus]):
    """Keeps the keys that are added, and says below the table how many are left out.

    Of keys that are alike, the first `layout.most_alike` are shown; with `layout.only_attention`,
    only those that are urgent or wait for people.
    """

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout
        self._statuses: list[KeyStatus] = []
        self._alike = Grouping[str](layout.most_alike)

    def add(self, item: KeyStatus) -> str:
        is_wanted = item.needs_attention or not self._layout.only_attention
        if is_wanted and self._alike.shows(_kind(item)):
            self._statuses.append(item)
        return ""

    def end(self) -> Iterator[str]:
        if self._statuses:
            yield from self._table(self._statuses)
        width, rest = self._layout.width, list(self._alike.rest())
        for kind, count in rest:
            yield from wrapped(and_more(count, kind), width)
        if rest:
            alike = sum(count for _, count in rest)
            yield from hidden_rows(0, width, alike=alike, shown_by=self._layout.shown_by)

    @abstractmethod
    def _table(self, statuses: Sequence[KeyStatus]) -> Iterator[str]:
        """The lines for these keys, at least one."""


def _kind(status: KeyStatus) -> str:
    """What is said of a key and those that are alike."""
    text = f"{status.stage}, next: {status.action}"
    if not status.needs_attention:
        return text
    note = without_names(printable(status.note), status.sign_domain, status.selector)
    return f"{text}, URGENT: {note}" if status.urgency else f"{text}: {note}"
