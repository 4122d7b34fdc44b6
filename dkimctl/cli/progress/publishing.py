"""Progress of reading and changing DNS, on stderr: a bar on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.display import ProgressDisplay


class PublicationProgress:
    """Shows how many of `total` records are done; `done_word` says what that means.

    All is called from the main thread. `clock` gives seconds.
    """

    def __init__(
        self,
        reporter: Reporter,
        total: int,
        done_word: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._display = ProgressDisplay(reporter, may_draw=True, clock=clock)
        self._total = total
        self._done_word = done_word

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._display.__exit__()

    def show(self, done: int) -> None:
        if self._display.is_due:
            text = f"{done}/{self._total} {self._done_word}"
            self._display.draw(done, self._total, text)
