"""Checks as one line for Nagios, Icinga and others (Monitoring Plugins guidelines)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from enum import IntEnum

from dkimctl.dns.verdicts import Check, Urgency, Verdict
from dkimctl.models.registration import named
from dkimctl.render.check_counts import CheckCounts, Run
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable

_MAX_NAMED = 5
_MAX_MESSAGE = 200  # characters
_URGENT_WORDS = {
    Urgency.SIGNING: "signing without DNS",
    Urgency.PARTLY: "partly in DNS",
    Urgency.SOON: "starting soon without DNS",
}


class State(IntEnum):
    """What a plugin says, by its exit status."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


class NagiosRenderer(Renderer[Check]):
    """One line with the state, and performance data; `clock` gives seconds since 1970."""

    def __init__(
        self, wanted: Verdict, run: Run, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._counts = CheckCounts(wanted)
        self._run = run
        self._clock = clock

    @property
    def state(self) -> State:
        counts = self._counts
        if counts.urgencies[Urgency.SIGNING]:
            return State.CRITICAL
        silent = counts.verdicts[Verdict.NO_ANSWER]
        if self._run.is_incomplete() or counts.good + silent < counts.total:
            return State.WARNING
        return State.UNKNOWN if silent else State.OK

    def add(self, item: Check) -> str:
        self._counts.add(item)
        return ""

    def end(self) -> Iterator[str]:
        yield f"{_line(self.state, self._text())} | {' '.join(self._data())}\n"

    def _text(self) -> str:
        counts = self._counts
        word = "gone" if counts.wanted is Verdict.MISSING else "published"
        parts = [f"{counts.good} of {counts.total} {word}"]
        parts += [
            f"{counts.urgencies[one]} {_URGENT_WORDS[one]}"
            for one in Urgency
            if counts.urgencies[one]
        ]
        wrong = [f"{named(check)} {check.finding.verdict}" for check in counts.wrong[:_MAX_NAMED]]
        if wrong:
            more = counts.total - counts.good - len(wrong)
            parts.append("; ".join(wrong) + (f" and {more} more" if more else ""))
        if self._run.is_incomplete():
            parts.append("some were not checked")
        return ", ".join(parts)

    def _data(self) -> Iterator[str]:
        """Performance data: label=value;warning;critical;minimum;maximum."""
        counts = self._counts
        yield f"published={counts.good};;;0;{counts.total}"
        yield f"wrong={counts.total - counts.good};0;;0;{counts.total}"
        yield f"signing={counts.urgencies[Urgency.SIGNING]};;0;0;{counts.total}"
        yield f"soon={counts.urgencies[Urgency.SOON]};0;;0;{counts.total}"
        yield f"no_answer={counts.verdicts[Verdict.NO_ANSWER]};0;;0;{counts.total}"
        yield f"time={max(self._clock() - self._run.began, 0):.2f}s;;;0"


def unknown_line(message: str) -> str:
    """The line for an error that ends the command."""
    return f"{_line(State.UNKNOWN, message[:_MAX_MESSAGE])}\n"


def _line(state: State, text: str) -> str:
    """A bar would begin performance data."""
    return f"DKIM {state.name} - {printable(text).replace('|', '/')}"
