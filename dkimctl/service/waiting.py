"""How code tells the server that it is about to wait: for keys, a disk or another machine.

The server's thread answers one request after the other. It notices by itself if an answer takes
long; if it is told, no other client has to wait until then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_handlers = threading.local()


def about_to_wait() -> None:
    """Let the server answer other requests meanwhile. Outside the server's threads, do nothing."""
    if handler := getattr(_handlers, "on_wait", None):
        handler()


def set_wait_handler(handler: Callable[[], object] | None) -> None:
    """Have `about_to_wait` call `handler` in this thread; None: call nothing."""
    _handlers.on_wait = handler
