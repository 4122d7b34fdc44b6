"""What a run is bound by, and whom it tells how it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dkimctl.models.registration import Result


class Watcher(Protocol):
    """Who is told how a run goes on. Called in the thread that runs it."""

    def settled(self, results: Sequence[Result]) -> None:
        """These entries have their results; a batch's at once, in no order."""

    def waiting(self, entries: int, seconds: float, reason: str) -> None:
        """So many entries wait so long before they are sent again."""

    def ending(self, requests: int, seconds: float) -> None:
        """The run ends early, but waits so long at most for the answers to so many requests."""

    def tick(self) -> None:
        """Time has passed."""


class Limits(NamedTuple):
    """How much at once, and how long; durations are in seconds.

    `max_wait`: a request waits at most so long because the service asks it to. `grace`: so
    long a run that ends early waits for its last answers.
    """

    batch_size: int = 50
    concurrency: int = 8
    max_wait: float = 300.0
    grace: float = 30.0
