"""Writing to stdout in a thread of its own, so that a reader who stands still holds up nothing."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable

_AHEAD = 8  # pieces that wait to be written
_TICK = 0.5  # seconds


def write_in_thread(pieces: Iterable[str], idle: Callable[[], None]) -> OSError | None:
    """Write the pieces, drawing them to the end in any case; gives what went wrong first.

    While nothing can be written, `idle` is called twice a second in the caller's thread.
    """
    outlet = _BackgroundWriter()
    for text in pieces:
        outlet.put(_encoded(text), idle)
    return outlet.finish(idle)


class _BackgroundWriter:
    def __init__(self) -> None:
        self._failure: OSError | None = None
        self._pieces: queue.Queue[bytes | None] = queue.Queue(_AHEAD)
        # A daemon, since the program may end while the reader stands still. It writes below
        # Python's buffers, whose locks such a thread would not give back.
        self._thread = threading.Thread(target=self._run, daemon=True, name="dkimctl-output")
        sys.stdout.flush()
        self._descriptor = sys.stdout.fileno()
        self._thread.start()

    def put(self, data: bytes | None, idle: Callable[[], None]) -> None:
        while True:
            try:
                return self._pieces.put(data, timeout=_TICK)
            except queue.Full:
                idle()

    def finish(self, idle: Callable[[], None]) -> OSError | None:
        self.put(None, idle)
        while self._thread.is_alive():
            self._thread.join(_TICK)
            idle()
        return self._failure

    def _run(self) -> None:
        while (data := self._pieces.get()) is not None:
            if self._failure is None:
                try:
                    _write_whole(self._descriptor, data)
                except OSError as error:
                    self._failure = error


def _encoded(text: str) -> bytes:
    """As stdout would encode it; here and not in the thread, which could not tell of an error."""
    if os.linesep != "\n":
        text = text.replace("\n", os.linesep)
    return text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")


def _write_whole(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # somebody made it so that it does not wait
            time.sleep(0.05)
