"""Warnings about results that need attention."""

from __future__ import annotations

from dkimctl.cli.output.streams import Reporter
from dkimctl.models.registration import Outcome, Result, named
from dkimctl.text.grouping import MAX_ALIKE, listed, without_names

_HINTS = {
    Outcome.DIFFERS: "change the entry, or register another selector; it is not sent again",
    Outcome.TAKEN: "choose another selector, or ask the service's operator who owns it",
    Outcome.INVALID: "fix the entry and run the same command again",
    Outcome.UNUSABLE: "do not publish it; register another selector, and report it to the "
    "service's operator",
    Outcome.FAILED: "run the same command again later",
    Outcome.UNKNOWN: "if the entry has a selector, run the same command again; if not, ask the "
    "service's operator whether it is registered: if so, write its selector into the entry; if "
    "not, add --retry-unknown",
}


class AttentionWarnings:
    """Warns of results that need attention; of many with the same reason, once.

    With --verbose or as JSON, `add` warns of each; else `close` does of all.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._hinted: set[Outcome] = set()
        self._alike: dict[Outcome, dict[str, _Alike]] = {}

    def add(self, result: Result) -> None:
        outcome = result.outcome
        if outcome not in _HINTS:
            return
        if self._reporter.lists_all:
            self._warn(outcome, f"{named(result.registration)}: {outcome}: {result.reason}")
            return
        kind = without_names(result.reason, *result.registration.key)
        alike = self._alike.setdefault(outcome, {})
        if kind not in alike:
            alike[kind] = _Alike(kind)
        alike[kind].add(result)

    def close(self) -> None:
        for outcome, by_kind in self._alike.items():
            kinds = list(by_kind.values())
            for alike in kinds[:MAX_ALIKE]:
                self._warn(outcome, alike.text(outcome))
            if rest := sum(alike.count for alike in kinds[MAX_ALIKE:]):
                self._warn(
                    outcome, f"{outcome}: {rest:,} more, for other reasons (--verbose lists all)"
                )

    def _warn(self, outcome: Outcome, text: str) -> None:
        """Warn, the first time with the hint."""
        hint = "" if outcome in self._hinted else _HINTS[outcome]
        self._hinted.add(outcome)
        self._reporter.warn(text, hint=hint, code=outcome)


class _Alike:
    """Results with the same outcome, and the same reason but for their names."""

    def __init__(self, kind: str) -> None:
        self.count = 0
        self._kind = kind
        self._reasons: set[str] = set()
        self._names: list[str] = []

    def add(self, result: Result) -> None:
        self.count += 1
        if len(self._names) < MAX_ALIKE:
            self._names.append(named(result.registration))
            self._reasons.add(result.reason)

    def text(self, outcome: Outcome) -> str:
        reason = self._kind if len(self._reasons) > 1 else next(iter(self._reasons))
        if self.count == 1:
            return f"{self._names[0]}: {outcome}: {reason}"
        names = listed(self._names, count=self.count)
        return f"{outcome}: {reason}: {self.count:,} ({names})"
