"""Progress on stderr: a bar on the last line of a terminal, else lines."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, suppress
from typing import Any, Self, TextIO, cast

from dkimctl.cli.report import PLAIN_TERMINALS, Reporter
from dkimctl.models import GOOD, Outcome, Result
from dkimctl.text import counted, format_duration

# In seconds.
_BAR_AFTER = 1.0  # shorter work needs no bar
REDRAW, _LINE_EVERY, _MUCH_LONGER = 0.2, 5.0, 10.0
_RATE_OVER = 30.0  # longer than most waits, which would otherwise bring the rate to zero
# In columns.
_MIN_BAR, _MAX_BAR = 4, 40
_SPARE = 2  # at the end of the line, where the terminal echoes Ctrl-C and would wrap
_CLEAR = "\r\x1b[2K"  # the line (ECMA-48 EL)


class ProgressDisplay:
    """Draws a bar with a text, not in the first second and then at most five times a second.

    Only if it `may_draw`, without --quiet, and on a terminal that can move its cursor.
    """

    def __init__(self, reporter: Reporter, *, may_draw: bool = True) -> None:
        can_draw = sys.stderr.isatty() and os.environ.get("TERM") not in PLAIN_TERMINALS
        self.draws = may_draw and not reporter.quiet and can_draw
        self._reporter, self._stack = reporter, ExitStack()
        self._next_draw = time.monotonic() + _BAR_AFTER
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar = None
        self._stack.close()

    @property
    def is_due(self) -> bool:
        return self.draws and time.monotonic() >= self._next_draw

    def show(self, done: int, total: int, word: str) -> None:
        """Draw if it is time; `word` says what is done."""
        if self.is_due:
            self.draw(done, total, f"{done}/{total} {word}")

    def draw(self, done: int, total: int | None, text: str) -> None:
        """Draw now that `done` of `total` is done; None: the total is not known."""
        self._next_draw = time.monotonic() + REDRAW
        try:
            if self._bar is None:
                self._bar = _Bar(sys.stderr, colour=self._reporter.shows_colour(sys.stderr))
                self._stack.callback(self._bar.close)
                self._stack.enter_context(redirect_stderr(cast("TextIO", self._bar)))
            self._bar.show(done, total, text)
        except OSError:  # the terminal is gone; the work goes on
            self.draws = False
            self.__exit__()


class RegistrationProgress(ProgressDisplay):
    """Shows how far a run of `total` entries is; without a bar, --verbose asks for lines."""

    def __init__(self, total: int, reporter: Reporter, *, may_draw: bool = True) -> None:
        super().__init__(reporter, may_draw=may_draw)
        self._total, self._done, self._need_attention = total, 0, 0
        self._waits: list[tuple[float, int]] = []  # (until when, entries)
        now = time.monotonic()
        self._samples = deque([(now, 0)])  # (when, done), a second apart
        self._next_line = now + _LINE_EVERY
        self._next_wait_note = self._noted_until = now

    def settled(self, results: Sequence[Result]) -> None:
        outcomes = [result.outcome for result in results if result.outcome is not Outcome.PENDING]
        self._done += len(outcomes)
        self._need_attention += sum(outcome not in GOOD for outcome in outcomes)
        if (now := time.monotonic()) - self._samples[-1][0] >= 1:
            self._samples.append((now, self._done))
        self.tick()

    def waiting(self, entries: int, seconds: float, reason: str) -> None:
        """This many entries wait before they are tried again.

        Noted once in five seconds, since every batch waits when the service is down; sooner only
        for a wait that is much longer.
        """
        now = time.monotonic()
        until = now + seconds
        self._waits.append((until, entries))
        if now >= self._next_wait_note or until > self._noted_until + _MUCH_LONGER:
            self._next_wait_note, self._noted_until = now + _LINE_EVERY, until
            who, wait = counted(entries, "domain"), format_duration(seconds)
            self._reporter.note(f"dkimctl: waiting {wait} for {who}: {reason}")
        self.tick()

    def ending(self, requests: int, seconds: float) -> None:
        """The run ends early, but waits for answers to its last requests, at most `seconds`."""
        wait = f"{counted(requests, 'request')} in flight, waiting up to {format_duration(seconds)}"
        self._reporter.note(f"dkimctl: stopping; {wait} for answers (Ctrl-C to exit at once)")

    def tick(self) -> None:
        """Show the time that has passed; to be called at least twice a second."""
        now, done, total = time.monotonic(), self._done, self._total
        if self.draws:
            if self.is_due and (self._bar is not None or done < total):
                self.draw(done, total, f"{done}/{total} done, {self._rest(now, '/s')}")
        elif self._reporter.verbose and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            self._reporter.note(f"dkimctl: {done} of {total} done, {self._rest(now, ' a second')}")

    def _rest(self, now: float, per_second: str) -> str:
        """Such as "3 need attention, 50 waiting, 310 a second, 12 s left"."""
        # The rate is that of the last half minute.
        while len(self._samples) > 1 and self._samples[1][0] <= now - _RATE_OVER:
            self._samples.popleft()
        # Leave out the first second, in which everything known to the ledger comes at once.
        since, done = self._samples[1 if len(self._samples) > 2 else 0]
        rate = (self._done - done) / (now - since) if now > since else 0.0
        left = self._total - self._done
        self._waits = [(until, entries) for until, entries in self._waits if until > now]
        waiting = min(sum(entries for _, entries in self._waits), max(left, 0))
        verb = "needs" if self._need_attention == 1 else "need"
        parts = [f"{self._need_attention} {verb} attention", f"{waiting} waiting",
                 f"{rate:.{0 if rate >= 10 else 1}f}{per_second}"]  # fmt: skip
        if rate and left > 0:
            parts.append(f"{format_duration(left / rate)} left")
        return ", ".join(parts)


class _Bar:
    """The last line of `stream`, for which it stands in: whole lines are written above it."""

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._stream = stream
        self._styles = ("\x1b[32m", "\x1b[2m", "\x1b[0m") if colour else ("", "", "")
        is_ascii = (stream.encoding or "utf-8").lower().replace("-", "") != "utf8"
        self._block = "-" if is_ascii else "━"
        self._bar = ""  # with its text
        self._text_width = 0
        self._unfinished = ""  # a line without its end

    def show(self, done: int, total: int | None, text: str) -> None:
        """Redraw it. The bar gets the columns that `text` leaves, which is cut if it must be."""
        columns = 80
        with suppress(OSError):
            columns = os.get_terminal_size(self._stream.fileno()).columns or columns
        # The longest text so far counts, or the bar would change its length all the time.
        self._text_width = max(self._text_width, len(text))
        width = min(max(columns - _SPARE - 1 - self._text_width, _MIN_BAR), _MAX_BAR)
        full = min(width * done // total, width) if total else 0
        done_style, left_style, end = self._styles
        rest = (self._block if left_style else " ") * (width - full)
        bar = f"{done_style}{self._block * full}{end}{left_style}{rest}{end}"
        self._bar = f"{bar} {text[: max(columns - _SPARE - 1 - width, 0)]}"
        self._stream.write(f"{_CLEAR}{self._bar}")
        self._stream.flush()

    def write(self, text: str) -> int:
        lines, end, self._unfinished = (self._unfinished + text).rpartition("\n")
        if end:
            self._stream.write(f"{_CLEAR}{lines}\n{self._bar}")
        return len(text)

    def close(self) -> None:
        with suppress(OSError):
            self._stream.write(f"{_CLEAR}{self._unfinished}")
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
