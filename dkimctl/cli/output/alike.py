"""Warnings of which many may be alike: the first of each kind are shown, the rest counted."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.cli.output.streams import Reporter
from dkimctl.text.grouping import MAX_ALIKE, Grouping, and_more, without_values


class AlikeWarnings:
    """Gives warnings to `reporter`; `close` counts those that it left out.

    With --verbose or as JSON, all are shown.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._grouping = Grouping[tuple[str, str]](None if reporter.lists_all else MAX_ALIKE)

    def warn(self, text: str, *, kind: str, hint: str = "", code: str = "warning") -> None:
        """Warn, unless there were enough of this `kind`, which is a text for all of them."""
        if self._grouping.shows((kind, code)):
            self._reporter.warn(text, hint=hint, code=code)

    def close(self) -> None:
        for (kind, code), count in self._grouping.rest():
            text = f"{and_more(count, kind)} (--verbose lists all)"
            self._reporter.warn(text, code=code)


def warn_unreadable(reporter: Reporter, path: str, faults: Iterable[object]) -> None:
    """Warn about the items of a saved result that cannot be read."""
    warnings = AlikeWarnings(reporter)
    for fault in faults:
        kind = f"{path}: {without_values(str(fault))}"
        warnings.warn(f"{path}: {fault}", kind=kind, code="unreadable")
    warnings.close()
