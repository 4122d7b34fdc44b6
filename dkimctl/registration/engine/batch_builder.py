"""The entries of a file in its order: gathered into batches, and given out as results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from dkimctl.models.registration import Result
from dkimctl.registration.engine.batch import Batch, Slot


class BatchBuilder:
    """Takes in entries as batches need them, at most `window` ahead of the first unknown one.

    A batch never mixes entries whose selector the service chooses with others: only a
    request without the former can be repeated safely.
    """

    def __init__(self, slots: Iterable[Slot], *, batch_size: int, window: int) -> None:
        self._slots = iter(slots)
        self.batch_size = batch_size
        self._window = window
        self._waiting: deque[Slot] = deque()  # in the file's order
        self._partial: dict[bool, list[Slot]] = {True: [], False: []}
        self._is_exhausted = False

    @property
    def is_empty(self) -> bool:
        """Whether every entry's result has been given out."""
        return self._is_exhausted and not self._waiting

    def next_batch(self) -> Batch | None:
        """The next entries to send. None: there are none before more results are known."""
        while len(self._waiting) < self._window:
            slot = next(self._slots, None)
            if slot is None:
                self._is_exhausted = True
                break
            self._waiting.append(slot)
            if slot.result is None:
                gathered = self._partial[slot.spec.selector is None]
                gathered.append(slot)
                if len(gathered) >= self.batch_size:
                    return self._take(gathered)
        if not self._is_exhausted and self._waiting[0].result is not None:
            return None  # first, the results that are known make room
        return next((self._take(slots) for slots in self._partial.values() if slots), None)

    def known(self) -> Iterator[Result]:
        """Give out the results, up to the first that is not known yet."""
        while self._waiting and (result := self._waiting[0].result) is not None:
            self._waiting.popleft()
            yield result

    def _take(self, gathered: list[Slot]) -> Batch:
        batch = Batch(gathered[: self.batch_size])
        del gathered[: self.batch_size]
        return batch
