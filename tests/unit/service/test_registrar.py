from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.service import registrations
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database.store import Store
from dkimctl.service.http.validation import Entry, Rejection
from dkimctl.service.keys.pairs import KeyMaker, KeyPair
from dkimctl.service.registrar import Registrar
from dkimctl.service.registrations import Registration

ENTRY = Entry("example.com", None, 1024, None, 0, True)


def test_a_generated_selector_that_is_taken_is_replaced(
    store: Store, credentials: ClientCredentials, make_key: KeyMaker, ordered_keys: list[int]
) -> None:
    selectors = iter(["k1", "k2", "k3", "k1", "k4", "k5"])
    registrar = Registrar(store, make_key, lambda: 0.0, selectors.__next__)
    items = registrar.register(credentials.client_id, [ENTRY, ENTRY])
    assert [(item["result"]["code"], item["selector"]) for item in items] == [
        ("201", "k1"),
        ("201", "k4"),
    ]
    assert len(ordered_keys) == 2


def _entry(domain: str) -> Entry:
    return Entry(domain, "s1", 1024, None, 0, True)


def test_an_unusable_store_is_waited_for_only_once(
    store: Store,
    credentials: ClientCredentials,
    make_key: KeyMaker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def add(_store: Store, registration: Registration, _key: bytes) -> bool:
        tried.append(registration.sign_domain)
        raise UsageError("locked")

    monkeypatch.setattr(registrations, "add", add)
    registrar = Registrar(store, make_key, lambda: 0.0)
    entries = [_entry("a.example"), Rejection("b.example", "s1", "no"), _entry("c.example")]
    items = registrar.register(credentials.client_id, entries)
    assert [item["result"]["code"] for item in items] == ["500", "400", "500"]
    assert tried == ["a.example"]


def test_the_failure_of_one_entry_affects_no_other(
    store: Store, credentials: ClientCredentials, fixed_keys: dict[int, KeyPair]
) -> None:
    results = iter([ZeroDivisionError, fixed_keys[1024]])

    def make_key(_key_len: int) -> KeyPair:
        key = next(results)
        if isinstance(key, KeyPair):
            return key
        raise key

    entries = [_entry("a.example"), _entry("b.example")]
    items = Registrar(store, make_key, lambda: 0.0).register(credentials.client_id, entries)
    assert sorted(item["result"]["code"] for item in items) == ["201", "500"]
