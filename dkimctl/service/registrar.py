"""Registers the entries of one request (interface 4.2), each on its own."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime

from dkimctl.errors import UsageError
from dkimctl.service import items, registrations
from dkimctl.service.failures import told
from dkimctl.service.items import Item
from dkimctl.service.keys import KeyMaker, KeyPair, key_pool
from dkimctl.service.registrations import Registration
from dkimctl.service.store import Store
from dkimctl.service.validation import Entry, Rejection

_logger = logging.getLogger(__name__)

_SELECTOR_TRIES = 3

Judged = Entry | Rejection


def random_selector() -> str:
    """A selector of 9 characters that is hardly ever the same as another."""
    return f"k{secrets.token_hex(4)}"


class Registrar:
    """Registers for any client. `clock` gives seconds since the epoch."""

    def __init__(
        self,
        store: Store,
        make_key: KeyMaker,
        clock: Callable[[], float],
        new_selector: Callable[[], str] = random_selector,
    ) -> None:
        self._store = store
        self._make_key = make_key
        self._clock = clock
        self._new_selector = new_selector

    def register(self, client_id: str, entries: Sequence[Judged]) -> list[Item]:
        """One response item for each entry, in the same order.

        A failure spoils only its own, unless the store cannot be used: then no entry after it
        waits for the store again.
        """
        failures: list[Exception] = []
        with key_pool(self._make_key) as order_key:
            keys = self._order_keys(entries, order_key)
            settled = [
                self._settle(client_id, entry, key, failures)
                for entry, key in zip(entries, keys, strict=True)
            ]
        if failures:
            _logger.error("registering failed: %s", told(failures[0]))
        return settled

    def _order_keys(
        self, entries: Sequence[Judged], order_key: Callable[[int], Future[KeyPair]]
    ) -> list[Future[KeyPair] | None]:
        """A key to come for each entry that is to be stored, None for every other."""
        claimed = registrations.taken(self._store, _explicit_pairs(entries))
        keys: list[Future[KeyPair] | None] = []
        for entry in entries:
            key = None
            if isinstance(entry, Entry) and (entry.sign_domain, entry.selector) not in claimed:
                key = order_key(entry.key_len)
                claimed.update(_explicit_pairs([entry]))
            keys.append(key)
        return keys

    def _settle(
        self,
        client_id: str,
        entry: Judged,
        key: Future[KeyPair] | None,
        failures: list[Exception],
    ) -> Item:
        if isinstance(entry, Rejection):
            return items.rejected(entry)
        if any(isinstance(failure, UsageError) for failure in failures):
            return items.failed(entry)
        try:
            return self._register(client_id, entry, key)
        except Exception as failure:  # noqa: BLE001 - it is logged, and no reason to lose the rest
            failures.append(failure)
            return items.failed(entry)

    def _register(self, client_id: str, entry: Entry, key: Future[KeyPair] | None) -> Item:
        selectors = self._selectors_to_try(entry)
        if key is not None:
            pair = key.result()
            for selector in selectors:
                registration = self._registration(client_id, entry, selector, pair.value)
                if registrations.add(self._store, registration, pair.private_key):
                    return items.created(registration)
        found = registrations.find(self._store, entry.sign_domain, selectors[-1])
        return items.already_registered(found, client_id)

    def _selectors_to_try(self, entry: Entry) -> list[str]:
        """The selector asked for; otherwise new ones, as even a random one may be taken."""
        if entry.selector is not None:
            return [entry.selector]
        return [self._new_selector() for _ in range(_SELECTOR_TRIES)]

    def _registration(
        self, client_id: str, entry: Entry, selector: str, value: str
    ) -> Registration:
        now = datetime.fromtimestamp(self._clock(), UTC)
        return Registration(
            client_id=client_id,
            sign_domain=entry.sign_domain,
            selector=selector,
            key_len=entry.key_len,
            start_date=entry.start_date or now.isoformat(timespec="minutes"),
            default=entry.default,
            enable=entry.enable,
            value=value,
            regist_date=now.isoformat(timespec="seconds"),
        )


def _explicit_pairs(entries: Iterable[Judged]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, Entry) and entry.selector is not None:
            yield entry.sign_domain, entry.selector
