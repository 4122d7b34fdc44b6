"""Registers the entries of a request (interface 4.2), and builds the response items."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dkimctl.service.database.store import Store
from dkimctl.service.failures import describe_failure
from dkimctl.service.http.validation import Entry, Rejection
from dkimctl.service.keys.pairs import KeyPair
from dkimctl.service.registrations import Registration, RegistrationName, add_all, find_all

_logger = logging.getLogger(__name__)

_SELECTOR_TRIES = 3

Item = dict[str, Any]
"""An item of a registration response (interface 2.4)."""

KeysMaker = Callable[[str, Sequence[int]], Sequence[KeyPair | Exception]]
"""Makes a pair for each of the lengths in bits, for a client; or tells why there is none."""

FAILED = {"code": "500", "message": "unexpected error while registering; retry later"}
"""The result of an item that is not registered because of an error of the service."""


def random_selector() -> str:
    """A selector of 9 characters that is very unlikely to be taken."""
    return f"k{secrets.token_hex(4)}"


class _Pending(NamedTuple):
    """An entry with its key, not yet stored."""

    entry: Entry
    pair: KeyPair


class Registrar:
    """Registers for any client. `clock` returns seconds since the epoch."""

    def __init__(
        self,
        store: Store,
        make_keys: KeysMaker,
        clock: Callable[[], float],
        new_selector: Callable[[], str] = random_selector,
    ) -> None:
        self._store = store
        self._make_keys = make_keys
        self._clock = clock
        self._new_selector = new_selector

    def register(self, client_id: str, entries: Sequence[Entry | Rejection]) -> list[Item]:
        """One response item for each entry, in the same order.

        Whatever can be registered is, in one transaction. A key that cannot be made affects only
        its own entry.
        """
        names = [_name(entry) for entry in entries]
        wanted = {name for name in names if name is not None}
        known = find_all(self._store, wanted)
        new = _not_registered(entries, names, known)
        pending, failures = self._with_keys(client_id, new)
        created: dict[int, Registration] = {}
        try:
            created = self._create(client_id, pending)
            known |= {registration.name: registration for registration in created.values()}
            known |= find_all(self._store, wanted - known.keys())
        except Exception as failure:  # noqa: BLE001 - logged, and no reason to lose the rest
            failures.append(failure)
        if failures:
            _logger.error("registering failed: %s", describe_failure(failures[0]))
        return [
            _created_item(created[position])
            if position in created
            else _item(entry, None if name is None else known.get(name), client_id)
            for position, (entry, name) in enumerate(zip(entries, names, strict=True))
        ]

    def _with_keys(
        self, client_id: str, new: Mapping[int, Entry]
    ) -> tuple[dict[int, _Pending], list[Exception]]:
        """The entries to store, by position, with their keys; and why some have none."""
        made = self._make_keys(client_id, [entry.key_len for entry in new.values()])
        keys = dict(zip(new, made, strict=True))
        pending = {
            position: _Pending(new[position], key)
            for position, key in keys.items()
            if isinstance(key, KeyPair)
        }
        return pending, [key for key in made if isinstance(key, Exception)]

    def _create(self, client_id: str, pending: Mapping[int, _Pending]) -> dict[int, Registration]:
        """Store what is pending; returns what was stored, by position.

        An entry without a selector gets another one if even a random one is taken.
        """
        created: dict[int, Registration] = {}
        for _ in range(_SELECTOR_TRIES):
            candidates = self._candidates(client_id, pending)
            stored = add_all(
                self._store,
                {one: pending[position].pair.private_key for position, one in candidates.items()},
            )
            created |= {position: one for position, one in candidates.items() if one.name in stored}
            pending = {
                position: waiting
                for position, waiting in pending.items()
                if position not in created and waiting.entry.selector is None
            }
        return created

    def _candidates(
        self, client_id: str, pending: Mapping[int, _Pending]
    ) -> dict[int, Registration]:
        """A registration for each position; of those with the same name only the first."""
        names: set[RegistrationName] = set()
        candidates: dict[int, Registration] = {}
        for position, (entry, pair) in pending.items():
            registration = self._registration(client_id, entry, pair.value)
            if registration.name not in names:
                candidates[position] = registration
                names.add(registration.name)
        return candidates

    def _registration(self, client_id: str, entry: Entry, value: str) -> Registration:
        now = datetime.fromtimestamp(self._clock(), UTC)
        return Registration(
            client_id=client_id,
            sign_domain=entry.sign_domain,
            selector=entry.selector or self._new_selector(),
            key_len=entry.key_len,
            start_date=entry.start_date or now.isoformat(timespec="minutes"),
            default=entry.default,
            enable=entry.enable,
            value=value,
            regist_date=now.isoformat(timespec="seconds"),
        )


def _name(entry: Entry | Rejection) -> RegistrationName | None:
    """The name of a valid entry with a selector."""
    if isinstance(entry, Entry) and entry.selector is not None:
        return RegistrationName(entry.sign_domain, entry.selector)
    return None


def _not_registered(
    entries: Sequence[Entry | Rejection],
    names: Sequence[RegistrationName | None],
    known: Mapping[RegistrationName, Registration],
) -> dict[int, Entry]:
    """The entries to store, by position; of those with the same name only the first."""
    taken: set[RegistrationName | None] = set(known)
    new: dict[int, Entry] = {}
    for position, (entry, name) in enumerate(zip(entries, names, strict=True)):
        if isinstance(entry, Entry) and name not in taken:
            new[position] = entry
            if name is not None:
                taken.add(name)
    return new


def _item(entry: Entry | Rejection, known: Registration | None, client_id: str) -> Item:
    """The item of an entry that was not created; `known` is the registration of that name."""
    if isinstance(entry, Rejection):
        return _rejected_item(entry)
    if known is not None:
        return _already_registered_item(known, client_id)
    return _failed_item(entry)


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
    return {"result": _result("400", rejection.message), **_names_of(rejection)}


def _failed_item(entry: Entry) -> Item:
    return {"result": FAILED, **_names_of(entry)}


def _result(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}


def _names_of(entry: Entry | Rejection) -> dict[str, str]:
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
