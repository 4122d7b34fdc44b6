"""Results, or a plan of them, as Markdown: for a comment on a pull request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import Outcome, Result
from dkimctl.render.markdown import cell
from dkimctl.render.renderer import Renderer
from dkimctl.text.grouping import MAX_ALIKE

# What needs attention stands first: it is shown where there is no room for all.
_ORDER = (
    Outcome.DIFFERS, Outcome.TAKEN, Outcome.INVALID, Outcome.UNUSABLE, Outcome.FAILED,
    Outcome.UNKNOWN, Outcome.PENDING, Outcome.CREATED, Outcome.RETIRED, Outcome.EXISTS,
)  # fmt: skip
_ROOM = 60_000  # bytes of rows; a comment at GitHub has 65,536 characters at most
_COLUMNS = ("Domain", "Selector", "Bits", "Start")
_WITH_REASON = (*_COLUMNS, "Reason")


class ResultMarkdownRenderer(Renderer[Result]):
    """A heading with totals, and a table for each outcome; long ones, and what exists, are folded.

    It fits a comment: rows for which there is no room are counted. `is_plan`: nothing is sent.
    """

    def __init__(self, *, is_plan: bool = False) -> None:
        self._is_plan = is_plan
        self._rows: dict[Outcome, list[Result]] = defaultdict(list)
        self._room = _ROOM

    def add(self, item: Result) -> str:
        self._rows[item.outcome].append(item)
        return ""

    def end(self) -> Iterator[str]:
        outcomes = [outcome for outcome in _ORDER if self._rows[outcome]]
        totals = ", ".join(map(self._total, outcomes))
        yield f"### DKIM registrations: {totals or 'nothing to do'}\n"
        for outcome in outcomes:
            yield from self._section(outcome, self._rows[outcome])

    def _total(self, outcome: Outcome) -> str:
        is_to_come = self._is_plan and outcome is Outcome.PENDING
        return f"{'to create' if is_to_come else outcome.value} {len(self._rows[outcome]):,}"

    def _section(self, outcome: Outcome, results: Sequence[Result]) -> Iterator[str]:
        is_folded = outcome is Outcome.EXISTS or len(results) > MAX_ALIKE
        title = self._total(outcome)
        yield f"\n<details><summary>{title}</summary>\n" if is_folded else f"\n**{title}**\n"
        columns = _WITH_REASON if any(result.reason for result in results) else _COLUMNS
        rows = list(self._fitting(results, len(columns)))
        if rows:
            yield f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
            yield from rows
        if more := len(results) - len(rows):
            yield f"\n… and {more:,} more; `--format json` has them all\n"
        if is_folded:
            yield "\n</details>\n"

    def _fitting(self, results: Sequence[Result], width: int) -> Iterator[str]:
        """The first rows, as far as there is room."""
        for result in results:
            row = f"| {' | '.join(_cells(result)[:width])} |\n"
            self._room -= len(row.encode())
            if self._room < 0:
                return
            yield row


def _cells(result: Result) -> Sequence[str]:
    registration = result.registration
    key_len = registration.key_len
    return (
        cell(registration.sign_domain),
        cell(registration.selector or "-"),
        cell("-" if key_len is None else str(key_len)),
        cell(registration.start_date or "-"),
        cell(result.reason),
    )
