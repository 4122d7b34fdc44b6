"""The table of a plan: totals by outcome and by zone, then one line for each entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import ClassVar

from dkimctl.models.registration import GOOD, Outcome, Registration, Result
from dkimctl.render.grid import Grid, wrapped
from dkimctl.render.renderer import TableLayout
from dkimctl.render.table import TableRenderer, style_of
from dkimctl.text.dns_names import zone_finder
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import MAX_ALIKE

_ORDER = sorted(Outcome, key=lambda outcome: outcome is not Outcome.PENDING)  # that comes first
_MIN_LAST = 1


class PlanTableRenderer(TableRenderer):
    """Totals, then the rows; nothing has a record yet.

    Without `zones`, which contain all entries, entries are counted by a name that they share: what
    is a zone, only DNS knows.
    """

    _left_out: ClassVar[Set[Outcome]] = GOOD
    _left_out_ones: ClassVar[tuple[str, str]] = ("exists already", "exist already")
    _has_records: ClassVar[bool] = False

    def __init__(self, layout: TableLayout, zones: Sequence[str] = ()) -> None:
        super().__init__(layout)
        self._zones = zones
        self._planned: list[tuple[Registration, Outcome]] = []

    def add(self, result: Result) -> str:
        self._planned.append((result.registration, result.outcome))
        return super().add(result)

    def end(self) -> Iterator[str]:
        if self._planned:
            counts = Counter(outcome for _, outcome in self._planned)
            outcomes = [outcome for outcome in _ORDER if counts[outcome]]
            rows = [(outcome, str(counts[outcome])) for outcome in outcomes]
            yield from self._totals(("OUTCOME", "ENTRIES"), rows, list(map(style_of, outcomes)))
            yield from self._totals_by_name(outcomes)
        yield from super().end()

    def _totals_by_name(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        names = self._zone_names() if self._zones else self._shared_names()
        by_name: dict[str, Counter[Outcome]] = {}
        for name, (_, outcome) in zip(names, self._planned, strict=True):
            by_name.setdefault(name, Counter())[outcome] += 1
        if not self._zones and len(by_name) == len(self._planned):
            return  # nothing is shared
        largest_first = sorted(by_name, key=lambda name: (-by_name[name].total(), name))
        titles = ("ZONE" if self._zones else "UNDER", *(outcome.upper() for outcome in outcomes))
        rows = [
            (printable(name), *(str(by_name[name][outcome]) for outcome in outcomes))
            for name in largest_first[:MAX_ALIKE]
        ]
        yield from self._totals(titles, rows, more=len(largest_first) - len(rows))

    def _zone_names(self) -> list[str]:
        find_zone = zone_finder(self._zones)
        return [find_zone(_record_name(registration)) or "-" for registration, _ in self._planned]

    def _shared_names(self) -> list[str]:
        domains = [registration.sign_domain for registration, _ in self._planned]
        counts = Counter(name for domain in domains for name in _enclosing(domain))
        return [_shared(domain, counts) for domain in domains]

    def _totals(
        self,
        titles: Sequence[str],
        rows: Sequence[Sequence[str]],
        styles: Sequence[str] = (),
        *,
        more: int = 0,
    ) -> Iterator[str]:
        """A table of names and numbers, and an empty line."""
        widths = list(map(len, titles))
        cells = [
            (
                name,
                *(number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)),
            )
            for name, *numbers in rows
        ]
        layout = self._layout
        grid = Grid(titles, cells, layout.width, min_last=_MIN_LAST, colour=layout.colour)
        yield from grid.header()
        for at, texts in enumerate(cells):
            yield from grid.row(texts, [styles[at] if styles else "", *[""] * (len(titles) - 1)])
        if more:
            yield from wrapped(f"… and {more:,} more", layout.width)
        yield "\n"


def _record_name(registration: Registration) -> str:
    """The FQDN of the entry's record, or the name above it."""
    parent = f"_domainkey.{registration.sign_domain}"
    return parent if registration.selector is None else f"{registration.selector}.{parent}"


def _enclosing(domain: str) -> Iterator[str]:
    """The domain, and the names above it that have at least two labels."""
    while "." in domain:
        yield domain
        domain = domain.partition(".")[2]


def _shared(domain: str, counts: Mapping[str, int]) -> str:
    """The longest name that several entries are, or lie below; else the domain itself."""
    return next((name for name in _enclosing(domain) if counts[name] > 1), domain)
