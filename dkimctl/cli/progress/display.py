"""A progress bar on the last line of the terminal, below what is written to stderr meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, suppress
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from dkimctl.cli.output.colour import PLAIN_TERMINALS
from dkimctl.cli.output.streams import Reporter

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

# In seconds.
_BAR_AFTER = 1.0  # shorter work needs no bar
REDRAW = 0.2

# In columns.
_MIN_BAR = 4
_MAX_BAR = 40
_SPARE = 2  # at the end of the line, where the terminal echoes Ctrl-C and would wrap


class ProgressDisplay:
    """Draws a bar with a text, not in the first second and then at most five times a second.

    Nothing is drawn unless `may_draw`, with --quiet, or where stderr is not a terminal that can
    move its cursor. `clock` gives seconds.
    """

    def __init__(self, reporter: Reporter, *, may_draw: bool, clock: Callable[[], float]) -> None:
        self.draws = may_draw and not reporter.quiet and _is_drawable(sys.stderr)
        self._clock = clock
        self._next_draw = clock() + _BAR_AFTER
        self._bar: _Bar | None = None
        self._colour = reporter.shows_colour(sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            with suppress(OSError):
                bar.close()

    @property
    def is_shown(self) -> bool:
        return self._bar is not None

    @property
    def is_due(self) -> bool:
        """Whether it is time to draw."""
        return self.draws and self._clock() >= self._next_draw

    def draw(self, done: int, total: int | None, text: str) -> None:
        """Draw now that `done` of `total` is done; None: the total is not known."""
        self._next_draw = self._clock() + REDRAW
        try:
            self._bar = self._bar or _Bar(total, colour=self._colour)
            self._bar.show(done, total, text)
        except OSError:  # the terminal is gone; the work goes on
            self.draws = False
            self.__exit__()


class _Bar:
    def __init__(self, total: int | None, *, colour: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        stream = sys.stderr
        console = Console(
            file=stream, force_terminal=True, force_interactive=True, force_jupyter=False,
            no_color=not colour,
        )  # fmt: skip
        self._bar = BarColumn(complete_style="green", finished_style="green")
        self._column = Column()
        self._progress = Progress(
            self._bar, TextColumn("{task.description}", markup=False, table_column=self._column),
            console=console, auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._task = self._progress.add_task("", total=total)
        self._text_width = 0
        above = _LinesAbove(console, stream)
        with ExitStack() as stack:
            stack.callback(above.close)
            stack.enter_context(self._progress)
            # rich hides the cursor. A killed or suspended run would leave the shell without one.
            console.show_cursor(True)
            stack.enter_context(redirect_stderr(cast("TextIO", above)))
            self._stack = stack.pop_all()

    def show(self, done: int, total: int | None, text: str) -> None:
        """Redraw it. The bar gets the columns that `text` leaves; on a narrow terminal it wraps."""
        # The longest text so far counts, or the bar would change its length all the time.
        self._text_width = max(self._text_width, len(text))
        columns = self._progress.console.width - _SPARE - 1
        self._bar.bar_width = min(max(columns - self._text_width, _MIN_BAR), _MAX_BAR)
        self._column.max_width = max(columns - self._bar.bar_width, 1)
        self._progress.update(
            self._task, completed=done, total=total, description=text, refresh=True
        )

    def close(self) -> None:
        self._stack.close()


class _LinesAbove:
    """Stands in for stderr while there is a bar: writes whole lines above it, unchanged.

    (rich's own stand-in would wrap them at words, and put line ends into what is copied.)
    """

    def __init__(self, console: Console, stream: TextIO) -> None:
        self._console = console
        self._stream = stream
        self._unfinished = ""  # a line without its end

    def write(self, text: str) -> int:
        lines, end, self._unfinished = (self._unfinished + text).rpartition("\n")
        if end:
            self._console.print(_Verbatim(lines + end), soft_wrap=True, end="")
        return len(text)

    def close(self) -> None:
        self._stream.write(self._unfinished)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Verbatim:
    """Text that rich writes unchanged."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        yield Segment(self._text)


def _is_drawable(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") not in PLAIN_TERMINALS
