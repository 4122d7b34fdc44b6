"""The stages of keys as a table, for people, in the order in which they are added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.models.key_status import KeyStage, KeyStatus, NextAction
from dkimctl.render.grid import BOLD_RED, DIM, GREEN, YELLOW, Grid
from dkimctl.render.stage_rows import StageRows
from dkimctl.text.escaping import printable

_HEADER = ("DOMAIN", "SELECTOR", "STAGE", "SINCE", "NEXT", "DUE")
_STAGE, _NEXT = _HEADER.index("STAGE"), _HEADER.index("NEXT")
_MIN_DUE = len("2026-03-01")
_UNKNOWN = "unknown"
_UNDATED = (NextAction.NONE, NextAction.DECIDE, NextAction.WAIT)  # or they may be
_STYLES = {
    KeyStage.SIGNING: GREEN,
    KeyStage.RETIRED: YELLOW,
    KeyStage.UNANSWERED: YELLOW,
    KeyStage.UNKNOWN: YELLOW,
    KeyStage.REMOVED: DIM,
    KeyStage.DISABLED: DIM,
    KeyStage.TAKEN: DIM,
}


class StageTableRenderer(StageRows):
    """A header, then a row for each key; below it, what is urgent or waits for people."""

    def _table(self, statuses: Sequence[KeyStatus]) -> Iterator[str]:
        cells = [_cells(status) for status in statuses]
        layout = self._layout
        grid = Grid(
            _HEADER, cells, layout.width,
            min_last=_MIN_DUE, colour=layout.colour, wordy=(_STAGE, _NEXT),
        )  # fmt: skip
        yield from grid.header()
        for status, texts in zip(statuses, cells, strict=True):
            urgent = BOLD_RED if status.urgency else ""
            yield from grid.row(texts, ["", "", _STYLES.get(status.stage, ""), "", urgent, urgent])
            if status.note and status.needs_attention:
                yield from grid.below(printable(status.note), urgent)


def _cells(status: KeyStatus) -> tuple[str, ...]:
    is_dated = status.action not in _UNDATED
    return (
        printable(status.sign_domain),
        printable(status.selector or "-"),
        status.stage,
        str(status.since.date()) if status.since else _UNKNOWN,
        f"{status.action}, URGENT" if status.urgency else status.action,
        str(status.due.date()) if status.due else (_UNKNOWN if is_dated else "-"),
    )
