"""How code tells the server that it is about to wait: for keys, a disk or another machine.

The server's thread answers one request after the other. It notices by itself if an answer takes
long; if it is told, no other client has to wait until then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_of_thread = threading.local()


def about_to_wait() -> None:
    """Have another thread answer what else comes. Does nothing in threads of other owners."""
    if owner := getattr(_of_thread, "owner", None):
        owner()


def own_thread(owner: Callable[[], object]) -> None:
    """Have `about_to_wait` call `owner` in this thread."""
    _of_thread.owner = owner
