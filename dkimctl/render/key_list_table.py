"""Keys as a table, for people: one row for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from dkimctl.dns.verdicts import Verdict
from dkimctl.models.key_status import KeyStage
from dkimctl.models.listed_key import NOT_CHECKED, ListedKey
from dkimctl.render.grid import BOLD_RED, DIM, GREEN, INDENT, RED, YELLOW, Grid
from dkimctl.render.renderer import Renderer, TableLayout
from dkimctl.text.escaping import printable
from dkimctl.text.idn import readable

_COLUMNS = ("DOMAIN", "SELECTOR", "BITS", "AGE", "START", "ON", "STATE", "SEEN", "STAGE")
_MORE_COLUMNS = ("NEXT", "DUE")  # of a wide table
_WORDY = ("STATE", "STAGE", "NEXT")
_MIN_LAST = len("registered")
_ROOM_FOR_ON = 90  # columns; in a narrower table START says that a key is disabled
_GOOD_STATES = {
    Verdict.PUBLISHED: GREEN,
    Verdict.DIFFERS: YELLOW,
    Verdict.NO_ANSWER: YELLOW,
    NOT_CHECKED: YELLOW,
}
_OVER = (KeyStage.REMOVED, KeyStage.DISABLED, KeyStage.TAKEN)


class KeyTableRenderer(Renderer[ListedKey]):
    """A header and the rows; `layout.wide` adds columns, and the FQDN below each."""

    def __init__(self, layout: TableLayout, now: datetime) -> None:
        self._layout = layout
        self._now = now
        self._keys: list[ListedKey] = []

    def add(self, item: ListedKey) -> str:
        self._keys.append(item)
        return ""

    def end(self) -> Iterator[str]:
        if not self._keys:
            return
        layout, columns = self._layout, self._columns()
        cells = [[*self._cells(key, columns)] for key in self._keys]
        wordy = [at for at, name in enumerate(columns[:-1]) if name in _WORDY]
        grid = Grid(
            columns, cells, layout.width, min_last=_MIN_LAST, colour=layout.colour, wordy=wordy
        )
        yield from grid.header()
        for key, texts in zip(self._keys, cells, strict=True):
            yield from grid.row(texts, [_style(key, column) for column in columns])
            if layout.wide and key.fqdn:
                yield f"{INDENT}{grid.styled(printable(key.fqdn), DIM)}\n"

    def _cells(self, key: ListedKey, columns: Sequence[str]) -> Iterator[str]:
        texts = _texts(key, self._now, self._layout.encoding, has_on="ON" in columns)
        return (printable(texts[column] or "-") for column in columns)

    def _columns(self) -> list[str]:
        if self._layout.wide:
            return [*_COLUMNS, *_MORE_COLUMNS]
        is_narrow = self._layout.width < _ROOM_FOR_ON
        return [column for column in _COLUMNS if not (is_narrow and column == "ON")]


def _texts(
    key: ListedKey, now: datetime, encoding: str, *, has_on: bool
) -> Mapping[str, str | None]:
    """The texts of all columns, by their names."""
    status = key.status
    is_off = key.enable is False
    return {
        "DOMAIN": readable(key.sign_domain, encoding),
        "SELECTOR": key.selector,
        "BITS": str(key.key_len or ""),
        "AGE": short_time(key.age),
        "START": "disabled" if is_off and not has_on else _day(key.starts_at),
        "ON": "" if key.enable is None else ("no" if is_off else "yes"),
        "STATE": key.state,
        "SEEN": short_time(None if key.looked_at is None else now - key.looked_at),
        "STAGE": status.stage,
        "NEXT": status.action,
        "DUE": _day(status.due),
    }


def _style(key: ListedKey, column: str) -> str:
    if column == "STATE" and key.state is not None:
        return BOLD_RED if key.status.urgency else _GOOD_STATES.get(key.state, RED)
    return DIM if key.status.stage in _OVER else ""


def short_time(time: timedelta | None) -> str:
    """A time in its largest unit, rounded down, such as `184d`, `5h` or `3m`; "" for None."""
    if time is None:
        return ""
    minutes = max(int(time.total_seconds()), 0) // 60
    if minutes >= 24 * 60:
        return f"{minutes // (24 * 60)}d"
    return f"{minutes // 60}h" if minutes >= 60 else f"{minutes}m"


def _day(time: datetime | None) -> str:
    return str(time.date()) if time else ""
