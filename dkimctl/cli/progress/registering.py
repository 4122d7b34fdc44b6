"""Progress of a registration, on stderr: a bar on a terminal, else lines where asked for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self, TextIO

from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.bar import Bar
from dkimctl.cli.progress.tally import Tally, duration
from dkimctl.models.registration import Result

# All in seconds.
_BAR_AFTER = 1.0  # a shorter run needs no bar
_REDRAW = 0.1
_LINE_EVERY = 5.0
_MUCH_LONGER = 10.0


class Progress:
    """Tells how far a run of `total` entries is. All is called from the main thread.

    A bar is drawn on a terminal, unless `may_draw` says that something else is being shown
    there, --quiet or a dumb terminal forbids it, or the run takes less than a second. Where
    there is none, `verbose` asks for a line every five seconds. `clock` gives seconds.
    """

    def __init__(
        self,
        total: int,
        reporter: Reporter,
        *,
        verbose: bool,
        may_draw: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reporter = reporter
        self._verbose = verbose
        self._may_draw = may_draw and not reporter.quiet and is_drawable(sys.stderr)
        self._clock = clock
        now = clock()
        self._tally = Tally(total, now)
        self._next_draw = now + _BAR_AFTER
        self._next_line = now + _LINE_EVERY
        self._next_wait_told = self._told_until = now
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_bar()

    def settled(self, results: Sequence[Result]) -> None:
        """Results of entries, as they come in."""
        self._tally.settle(results, self._clock())
        self.tick()

    def waiting(self, entries: int, seconds: float, reason: str) -> None:
        """So many entries wait so long before they are tried again.

        Told once in five seconds, when a service is down and every batch waits for it; sooner
        only where one waits much longer.
        """
        now = self._clock()
        self._tally.wait(entries, now + seconds)
        until = now + seconds
        if now >= self._next_wait_told or until > self._told_until + _MUCH_LONGER:
            self._next_wait_told = now + _LINE_EVERY
            self._told_until = until
            named = "1 domain" if entries == 1 else f"{entries} domains"
            self._reporter.note(f"dkimctl: waiting {duration(seconds)} for {named}: {reason}")
        self.tick()

    def ending(self, requests: int, seconds: float) -> None:
        """The run ends early, but waits so long at most for the answers to so many requests."""
        named = "1 request" if requests == 1 else f"{requests} requests"
        self._reporter.note(
            f"dkimctl: stopping; {named} under way, waiting up to {duration(seconds)} for what is "
            "answered (Ctrl-C leaves at once)"
        )

    def tick(self) -> None:
        """Let time show; to be called at least twice a second."""
        now = self._clock()
        if self._may_draw:
            if now >= self._next_draw and (self._bar or self._tally.is_open):
                self._next_draw = now + _REDRAW
                self._draw(now)
        elif self._verbose and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            self._reporter.note(f"dkimctl: {self._tally.line(now)}")

    def _draw(self, now: float) -> None:
        try:
            self._bar = self._bar or Bar(self._tally.total)
            self._bar.show(self._tally.done, self._tally.short_line(now))
        except OSError:  # the terminal is gone; the run goes on
            self._may_draw = False
            self._end_bar()

    def _end_bar(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            with suppress(OSError):
                bar.close()


def is_drawable(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
