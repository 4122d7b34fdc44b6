"""A clock that several programs share, and that a test moves.

libfaketime reads its offset from the real time in a file, each time that a program asks for the
time; between two moves, time passes as always. The monotonic clock is the real one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from dated import FAKETIME


class MovingClock:
    """`environment` has the variables with which a program has this clock."""

    def __init__(self, file: Path, need: Callable[[str], str]) -> None:
        self._file = file
        # named's malloc (jemalloc) asks for the time before libfaketime is ready; with libc loaded
        # before jemalloc, libfaketime uses another one.
        self.environment = FAKETIME | {
            "LD_PRELOAD": f"{_library(need('faketime'))} libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
        }

    def move(self, then: datetime) -> None:
        """Make it this time (UTC) now."""
        offset = (then - datetime.now(UTC)).total_seconds()
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset:+.3f}\n")
        new.rename(self._file)

    @property
    def now(self) -> datetime:
        """The time (UTC)."""
        offset = float(self._file.read_text())
        return datetime.fromtimestamp(datetime.now(UTC).timestamp() + offset, UTC)


def _library(faketime: str) -> str:
    """The path of libfaketime for programs with threads."""
    command = [faketime, "-m", "-f", "+0", "printenv", "LD_PRELOAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
