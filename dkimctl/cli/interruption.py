"""Ctrl-C and its kin: the first stops a run in order, the second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # SIGHUP: the terminal was closed; not on Windows


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """While in the block, the first signal that asks to end calls `stop`.

    Every later one raises KeyboardInterrupt in the main thread. A signal that is being
    ignored (as nohup does with SIGHUP) stays ignored. The previous handlers come back at the
    end. Outside the main thread, where Python handles no signals, nothing is changed.

    `stop` runs in the main thread between any two of its steps, so it may take no lock that
    the main thread could be holding: it must not print, log, nor set a threading.Event. It may
    set an attribute, and put something into a queue.SimpleQueue, which is made for that.
    """
    called = False

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal called
        if called:
            raise KeyboardInterrupt
        called = True
        stop()

    with _handling(handle):
        yield


@contextmanager
def interrupting() -> Iterator[None]:
    """While in the block, a signal that asks to end raises KeyboardInterrupt, as Ctrl-C does.

    So what is begun can be undone. For the rest as with `stopping`.
    """

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    with _handling(handle):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # The stack puts back every handler, even when a signal raises in the midst of that.
    with ExitStack() as restored:
        for name in _SIGNALS:
            _replace(name, handler, restored)
        yield


def _replace(
    name: str, handler: Callable[[int, FrameType | None], None], restored: ExitStack
) -> None:
    number = getattr(signal, name, None)
    if number is None:
        return
    previous = signal.getsignal(number)
    # None: set by other than Python code, and so could not be put back.
    if previous is None or previous is signal.SIG_IGN:
        return
    restored.callback(signal.signal, number, previous)
    signal.signal(number, handler)
