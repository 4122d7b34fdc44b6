"""A bar on the last line of a terminal, beneath what is written to stderr meanwhile."""

from __future__ import annotations

import sys
from contextlib import ExitStack, redirect_stderr
from typing import TYPE_CHECKING, Any, TextIO, cast

from dkimctl.cli.output.streams import shows_colour

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

# In columns.
_NARROWEST = 4  # of the bar alone
_WIDEST = 40
_SPARE = 2  # at the end of the line: the terminal shows Ctrl-C there, and would go on to the next


class Bar:
    """A bar on the last line of the terminal. What is written to stderr meanwhile stands above."""

    def __init__(self, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        stream = sys.stderr
        console = Console(
            file=stream, force_terminal=True, force_interactive=True, force_jupyter=False,
            no_color=not shows_colour(stream),
        )  # fmt: skip
        self._bar = BarColumn(complete_style="green", finished_style="green")
        self._column = Column()
        self._display = Progress(
            self._bar, TextColumn("{task.description}", markup=False, table_column=self._column),
            console=console, auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._task = self._display.add_task("", total=total)
        self._text_width = 0
        above = _Above(console, stream)
        with ExitStack() as stack:
            stack.callback(above.close)
            stack.enter_context(self._display)
            # rich hides the cursor. A killed or suspended run would leave the shell without one.
            console.show_cursor(True)
            stack.enter_context(redirect_stderr(cast("TextIO", above)))
            self._stack = stack.pop_all()

    def show(self, done: int, text: str, total: int | None = None) -> None:
        """Draw it anew. The bar has what `text` leaves of the line; a narrow terminal folds."""
        # The longest text so far counts, or else the bar would change its length all the time.
        self._text_width = max(self._text_width, len(text))
        room = self._display.console.width - _SPARE - 1
        self._bar.bar_width = min(max(room - self._text_width, _NARROWEST), _WIDEST)
        self._column.max_width = max(room - self._bar.bar_width, 1)
        self._display.update(
            self._task, completed=done, total=total, description=text, refresh=True
        )

    def close(self) -> None:
        self._stack.close()


class _Above:
    """Stands in for stderr while there is a bar. Lines go above it just as they were written.

    (rich's own stand-in would fold them at words, and put line ends into what is copied.)
    """

    def __init__(self, console: Console, stream: TextIO) -> None:
        self._console = console
        self._stream = stream
        self._begun = ""  # a line that has no end yet

    def write(self, text: str) -> int:
        lines, end, self._begun = (self._begun + text).rpartition("\n")
        if end:
            self._console.print(_Verbatim(lines + end), soft_wrap=True, end="")
        return len(text)

    def close(self) -> None:
        self._stream.write(self._begun)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Verbatim:
    """Text that rich writes as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        yield Segment(self._text)
