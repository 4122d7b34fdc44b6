"""One provider for all zones of a target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class SharedProvider:
    """A provider that one thread uses at a time, made when it is needed.

    Making one for each zone would cost requests, such as for the list of zones. octoDNS itself has
    one that works on one zone at a time: providers have no locks, and services limit requests.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._provider: Any = None
        self._read: set[str] = set()

    @contextmanager
    def using(self) -> Iterator[Any]:
        """The provider, with what it keeps. Not within another `using` or `reading`."""
        with self._lock:
            yield self._made()

    @contextmanager
    def reading(self, zone: str) -> Iterator[Any]:
        """A provider that has not read this zone before: many keep what they have read."""
        with self._lock:
            if zone in self._read:
                self._provider = None
                self._read.clear()
            self._read.add(zone)
            yield self._made()

    def _made(self) -> Any:
        if self._provider is None:
            self._provider = self._make()
        return self._provider
