from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from dkimctl.errors import UsageError
from dkimctl.service.clients import ClientCredentials, create_client
from dkimctl.service.database.sqlite import SqliteStore
from dkimctl.service.database.store import Store
from dkimctl.service.http.validation import Entry, Rejection
from dkimctl.service.keys.pairs import KeyPair
from dkimctl.service.registrar import Registrar

ENTRY = Entry("example.com", None, 1024, None, 0, True)
MakeKeys = Callable[[str, Sequence[int]], list[KeyPair | Exception]]


@pytest.fixture
def make_keys(fixed_keys: dict[int, KeyPair]) -> MakeKeys:
    return lambda _client, lengths: [fixed_keys[key_len] for key_len in lengths]


def _entry(domain: str) -> Entry:
    return Entry(domain, "s1", 1024, None, 0, True)


def _codes(items) -> list[str]:
    return [item["result"]["code"] for item in items]


def test_a_generated_selector_that_is_taken_is_replaced(
    store: Store, credentials: ClientCredentials, make_keys: MakeKeys
) -> None:
    selectors = iter(["k1", "k1", "k2", "k2", "k3"])
    registrar = Registrar(store, make_keys, lambda: 0.0, selectors.__next__)
    items = registrar.register(credentials.client_id, [ENTRY, ENTRY])
    items += registrar.register(credentials.client_id, [ENTRY])
    assert _codes(items) == ["201"] * 3
    assert [item["selector"] for item in items] == ["k1", "k2", "k3"]


def test_without_a_free_selector_the_entry_fails(
    store: Store, credentials: ClientCredentials, make_keys: MakeKeys
) -> None:
    registrar = Registrar(store, make_keys, lambda: 0.0, lambda: "k1")
    assert _codes(registrar.register(credentials.client_id, [ENTRY, ENTRY])) == ["201", "500"]


def test_a_store_that_fails_fails_what_it_should_store(
    sqlite_store: SqliteStore, make_keys: MakeKeys
) -> None:
    client_id = create_client(sqlite_store).client_id
    registrar = Registrar(sqlite_store, make_keys, lambda: 0.0)
    registrar.register(client_id, [_entry("b.example")])
    entries = [_entry("a.example"), Rejection("x", "s1", "no"), _entry("b.example")]

    def take_away(client_id: str, lengths: Sequence[int]) -> list[KeyPair | Exception]:
        keys = make_keys(client_id, lengths)
        sqlite_store.path.rename(sqlite_store.path.with_suffix(".away"))
        return keys

    items = Registrar(sqlite_store, take_away, lambda: 0.0).register(client_id, entries)
    assert _codes(items) == ["500", "400", "409"]


def test_a_data_file_that_is_away_refuses_the_next_request(
    sqlite_store: SqliteStore, make_keys: MakeKeys
) -> None:
    client_id = create_client(sqlite_store).client_id
    registrar = Registrar(sqlite_store, make_keys, lambda: 0.0)
    sqlite_store.path.unlink()
    with suppress(UsageError):  # if reading has noticed it
        assert _codes(registrar.register(client_id, [_entry("a.example")])) == ["500"]
    with pytest.raises(UsageError, match="moved or replaced"), sqlite_store.writing():
        pass


def test_the_failure_of_one_entry_affects_no_other(
    store: Store, credentials: ClientCredentials, fixed_keys: dict[int, KeyPair]
) -> None:
    entries = [_entry("a.example"), _entry("b.example"), _entry("a.example")]
    registrar = Registrar(store, lambda *_: [ZeroDivisionError(), fixed_keys[1024]], lambda: 0.0)
    assert _codes(registrar.register(credentials.client_id, entries)) == ["500", "201", "500"]
