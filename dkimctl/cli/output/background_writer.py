"""Writing to stdout in a thread of its own, so that a slow reader holds up nothing else."""

from __future__ import annotations

import os
import queue
import sys
import time

from dkimctl.system.threads import StartThread, start_daemon

_TICK = 0.5  # seconds; a wait without a timeout would not hear Ctrl-C on Windows


class BackgroundWriter:
    """Takes text without waiting, and writes it to stdout in order.

    What the reader has not taken yet waits in memory; all of it, and until `finish`, where the
    system allows no thread.
    """

    def __init__(self, start_thread: StartThread = start_daemon) -> None:
        self._failure: OSError | None = None
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # The program may end while the reader stands still. So the thread writes below Python's
        # buffers, whose locks it would not give back.
        sys.stdout.flush()
        self._descriptor = sys.stdout.fileno()
        self._thread = start_thread(self._run, "dkimctl-output")

    def write(self, text: str) -> None:
        self._pieces.put(_encoded(text))

    def finish(self) -> OSError | None:
        """Wait until all is written; returns the first error, if any."""
        self._pieces.put(None)
        if self._thread is None:
            self._run()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_TICK)
        return self._failure

    def _run(self) -> None:
        while (data := self._pieces.get()) is not None:
            if self._failure is None:
                try:
                    _write_whole(self._descriptor, data)
                except OSError as error:
                    self._failure = error


def _encoded(text: str) -> bytes:
    """As stdout would encode it; here and not in the thread, which could not report an error."""
    if os.linesep != "\n":
        text = text.replace("\n", os.linesep)
    return text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")


def _write_whole(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # another program has set the pipe to non-blocking
            time.sleep(0.05)
