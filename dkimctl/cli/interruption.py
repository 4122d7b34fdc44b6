"""Ctrl-C, SIGTERM and SIGHUP: the first stops a run in an orderly way, the second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

_ENDINGS = ("SIGTERM", "SIGHUP")  # SIGHUP: the terminal was closed (not on Windows)
_SIGNALS = ("SIGINT", *_ENDINGS)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block, the first signal calls `stop`, every later one raises KeyboardInterrupt.

    A signal that is ignored (nohup ignores SIGHUP) stays ignored. The previous handlers are
    restored at the end. Outside the main thread, where Python handles no signals, nothing changes.

    `stop` interrupts the main thread anywhere, so it must not take a lock that the main thread may
    hold: it must not print, log or set a threading.Event. It may set an attribute or put an item
    into a queue.SimpleQueue, which is reentrant.
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
    """Within the block, every signal raises KeyboardInterrupt, so that work can be undone.

    Otherwise like `stopping`.
    """

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    with _handling(handle):
        yield


@contextmanager
def ending_like_ctrl_c() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP do what Ctrl-C does, which asyncio handles itself.

    Otherwise like `stopping`.
    """

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a job in the background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with _handling(handle, _ENDINGS):
        yield


@contextmanager
def _handling(
    handler: Callable[[int, FrameType | None], None], names: Iterable[str] = _SIGNALS
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # An ExitStack restores every handler, even if a signal raises while it does.
    with ExitStack() as previous:
        for name in names:
            _set_handler(name, handler, previous)
        yield


def _set_handler(
    name: str, handler: Callable[[int, FrameType | None], None], previous: ExitStack
) -> None:
    number = getattr(signal, name, None)
    if number is None:
        return
    current = signal.getsignal(number)
    # None: not set from Python, so it could not be restored.
    if current is None or current is signal.SIG_IGN:
        return
    previous.callback(signal.signal, number, current)
    signal.signal(number, handler)
