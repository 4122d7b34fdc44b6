"""Keys for requests in time: from the pool, or made now."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dkimctl.errors import UsageError
from dkimctl.service.database.store import Store
from dkimctl.service.failures import describe_failure
from dkimctl.service.keys import pool
from dkimctl.service.keys.making import KeyMaking, KeysNotInTime
from dkimctl.service.keys.pairs import KEY_LENGTHS, KeyMaker, KeyPair
from dkimctl.system.threads import StartThread, start_daemon

_logger = logging.getLogger(__name__)

_LOOK = 1.0  # seconds between looks at the pool, which other processes fill and empty


class KeySupply:
    """Gives each request its keys within `limit` seconds, or none.

    `ahead` keys of each length are made while there is nothing else to do. For `max_waiting` and
    `threads` see KeyMaking.
    """

    def __init__(
        self,
        store: Store,
        make: KeyMaker,
        *,
        ahead: int,
        max_waiting: int,
        limit: float,
        threads: int | None = None,
        start_thread: StartThread = start_daemon,
    ) -> None:
        self._store = store
        self._make = make
        self._ahead = ahead
        self._missing: Counter[int] = Counter()
        self._looked_at = -_LOOK
        self._lock = threading.Lock()
        self._making = KeyMaking(
            make,
            max_waiting=max_waiting,
            limit=limit,
            threads=threads,
            make_ahead=self._make_one_ahead if ahead else None,
            start_thread=start_thread,
        )
        if ahead:
            self._making.start()

    def make_all(self, client_id: str, lengths: Sequence[int]) -> list[KeyPair | Exception]:
        """A key for each of the lengths in bits, or why that one could not be made.

        Raises KeysNotInTime if not all can be there in time; those that are stay in the pool.
        """
        keys = self._from_pool(lengths)
        missing = [position for position in range(len(lengths)) if position not in keys]
        try:
            if missing:
                keys |= self._made_now(client_id, lengths, missing)
            if len(keys) < len(lengths):
                raise KeysNotInTime(self._making.retry_after())
        except KeysNotInTime:
            self._keep(lengths, keys)
            raise
        return [keys[position] for position in range(len(lengths))]

    def close(self) -> None:
        """End the threads; waits for none."""
        self._making.close()

    def _from_pool(self, lengths: Sequence[int]) -> dict[int, KeyPair | Exception]:
        """Keys by position, as far as the pool has them."""
        if not lengths or not pool.depth(self._store):  # taking needs the right to write
            return {}
        taken = pool.take(self._store, Counter(lengths))
        return {
            position: taken[key_len].pop()
            for position, key_len in enumerate(lengths)
            if taken[key_len]
        }

    def _made_now(
        self, client_id: str, lengths: Sequence[int], positions: Sequence[int]
    ) -> dict[int, KeyPair | Exception]:
        made = self._making.make_all(client_id, [lengths[position] for position in positions])
        return {positions[index]: key for index, key in made.items()}

    def _keep(self, lengths: Sequence[int], keys: Mapping[int, KeyPair | Exception]) -> None:
        """Have the next try of the same request find what is made."""
        pairs = [
            (lengths[position], key) for position, key in keys.items() if isinstance(key, KeyPair)
        ]
        with suppress(UsageError):
            pool.put(self._store, pairs)

    def _make_one_ahead(self) -> bool:
        """Make a key for the pool; False if it is full, or cannot be used."""
        try:
            key_len = self._wanted_ahead()
            if key_len is None:
                return False
            pool.put(self._store, [(key_len, self._make(key_len))])
        except Exception as error:  # noqa: BLE001 - tried again after a pause
            _logger.error("keys cannot be made ahead: %s", describe_failure(error))
            return False
        return True

    def _wanted_ahead(self) -> int | None:
        """A length of which the pool has too few keys."""
        with self._lock:
            if time.monotonic() > self._looked_at + _LOOK:
                self._looked_at = time.monotonic()
                there = pool.depth(self._store)
                self._missing = +Counter({one: self._ahead - there[one] for one in KEY_LENGTHS})
            if not self._missing:
                return None
            key_len = max(self._missing)
            self._missing -= Counter([key_len])
            return key_len
