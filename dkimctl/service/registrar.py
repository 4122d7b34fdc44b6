"""Registers the entries of a request (interface 4.2) one by one, and builds the response items."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from dkimctl.errors import UsageError
from dkimctl.service import registrations
from dkimctl.service.database.store import Store
from dkimctl.service.http.errors import describe_failure
from dkimctl.service.http.validation import Entry, Rejection
from dkimctl.service.keys.pairs import KeyMaker, KeyPair, key_pool
from dkimctl.service.registrations import Registration, RegistrationName

_logger = logging.getLogger(__name__)

_SELECTOR_TRIES = 3

Item = dict[str, Any]
"""An item of a registration response (interface 2.4)."""

FAILED = {"code": "500", "message": "unexpected error while registering; retry later"}
"""The result of an item that is not registered because of an error of the service."""


def random_selector() -> str:
    """A selector of 9 characters that is very unlikely to be taken."""
    return f"k{secrets.token_hex(4)}"


class Registrar:
    """Registers for any client. `clock` returns seconds since the epoch."""

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

    def register(self, client_id: str, entries: Sequence[Entry | Rejection]) -> list[Item]:
        """One response item for each entry, in the same order.

        A failure affects only its own entry. If the store cannot be used, the entries after it
        fail at once instead of each waiting for the store.
        """
        failures: list[Exception] = []
        with key_pool(self._make_key) as order_key:
            keys = self._order_keys(entries, order_key)
            items = [
                self._register_or_fail(client_id, entry, key, failures)
                for entry, key in zip(entries, keys, strict=True)
            ]
        if failures:
            _logger.error("registering failed: %s", describe_failure(failures[0]))
        return items

    def _order_keys(
        self, entries: Sequence[Entry | Rejection], order_key: Callable[[int], Future[KeyPair]]
    ) -> list[Future[KeyPair] | None]:
        """A future key for each entry that will be stored, None for the others."""
        claimed = registrations.registered(self._store, _explicit_names(entries))
        keys: list[Future[KeyPair] | None] = []
        for entry in entries:
            key = None
            if isinstance(entry, Entry) and (entry.sign_domain, entry.selector) not in claimed:
                key = order_key(entry.key_len)
                claimed.update(_explicit_names([entry]))
            keys.append(key)
        return keys

    def _register_or_fail(
        self,
        client_id: str,
        entry: Entry | Rejection,
        key: Future[KeyPair] | None,
        failures: list[Exception],
    ) -> Item:
        if isinstance(entry, Rejection):
            return _rejected_item(entry)
        if any(isinstance(failure, UsageError) for failure in failures):
            return _failed_item(entry)
        try:
            return self._register(client_id, entry, key)
        except Exception as failure:  # noqa: BLE001 - logged, and no reason to lose the rest
            failures.append(failure)
            return _failed_item(entry)

    def _register(self, client_id: str, entry: Entry, key: Future[KeyPair] | None) -> Item:
        selectors = self._selectors_to_try(entry)
        if key is not None:
            pair = key.result()
            for selector in selectors:
                registration = self._registration(client_id, entry, selector, pair.value)
                if registrations.add(self._store, registration, pair.private_key):
                    return _created_item(registration)
        existing = registrations.find(self._store, entry.sign_domain, selectors[-1])
        return _already_registered_item(existing, client_id)

    def _selectors_to_try(self, entry: Entry) -> list[str]:
        """The requested selector; otherwise new ones, as even a random one may be taken."""
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


def _explicit_names(entries: Iterable[Entry | Rejection]) -> Iterable[RegistrationName]:
    for entry in entries:
        if isinstance(entry, Entry) and entry.selector is not None:
            yield RegistrationName(entry.sign_domain, entry.selector)


def _created_item(registration: Registration) -> Item:
    return {"result": _result("201", "created"), **_registered_data(registration)}


def _already_registered_item(registration: Registration, client_id: str) -> Item:
    """The registered data is only for the client that registered it (interface 7.3)."""
    result = _result("409", "already registered")
    if registration.client_id == client_id:
        return {"result": result, **_registered_data(registration)}
    return {
        "result": result,
        "sign_domain": registration.sign_domain,
        "selector": registration.selector,
    }


def _rejected_item(rejection: Rejection) -> Item:
    return {"result": _result("400", rejection.message), **_names(rejection)}


def _failed_item(entry: Entry) -> Item:
    return {"result": FAILED, **_names(entry)}


def _result(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}


def _names(entry: Entry | Rejection) -> dict[str, str]:
    names = {"sign_domain": entry.sign_domain, "selector": entry.selector}
    return {field: name for field, name in names.items() if name is not None}


def _registered_data(registration: Registration) -> Item:
    return {
        "sign_domain": registration.sign_domain,
        "selector": registration.selector,
        "key_len": registration.key_len,
        "start_date": registration.start_date,
        "default": registration.default,
        "enable": registration.enable,
        "setting_values": {
            "fqdn": f"{registration.selector}._domainkey.{registration.sign_domain}",
            "type": "TXT",
            "value": registration.value,
        },
        "regist_date": registration.regist_date,
    }
