"""The statements that every request makes, by the driver of SQLite alone."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from dkimctl.service.clients import create_client
from dkimctl.service.database.schema import clients, tokens
from dkimctl.service.database.sqlite import SqliteStore
from dkimctl.service.database.store import Store, StoreUnavailable

IDS = select(clients.c.client_id).order_by(clients.c.client_id)
STATE = select(clients.c.state).where(clients.c.client_id == bindparam("of"))
TOKEN = insert(tokens)


@pytest.fixture
def store(store: Store) -> Store:
    create_client(store, "b")
    create_client(store, "a")
    return store


def token(number: int, client_id: str = "a") -> dict[str, object]:
    return {"token_hash": bytes([number]), "client_id": client_id, "expires_at": 1.0}


def test_the_first_row_or_none(store: Store) -> None:
    assert store.first(IDS, {}) == ("a",)
    assert store.first(STATE, {"of": "a"}) == ("active",)
    assert store.first(STATE, {"of": "unknown"}) is None


def test_a_row_that_is_added_is_there_for_others(store: Store) -> None:
    store.add(TOKEN, token(1))
    with store.reading() as connection:
        assert connection.execute(select(tokens)).all() == [(b"\1", "a", 1.0)]


def test_a_row_that_breaks_a_rule_is_not_added(store: Store) -> None:
    store.add(TOKEN, token(1))
    for row in (token(1), token(2, "unknown")):
        with pytest.raises(IntegrityError):
            store.add(TOKEN, row)
    store.add(TOKEN, token(3))


def test_threads_do_not_disturb_one_another(store: Store) -> None:
    found: list[object] = []

    def work(number: int) -> None:
        found.extend([store.first(STATE, {"of": "a"}) for _ in range(50)])
        store.add(TOKEN, token(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [("active",)] * 400
    with store.reading() as connection:
        assert len(connection.execute(select(tokens)).all()) == 8


def test_nothing_stays_open_after_the_first_of_many_rows(sqlite_store: SqliteStore) -> None:
    for name in "ab":
        create_client(sqlite_store, name)
    assert sqlite_store.first(IDS, {}) == ("a",)
    with sqlite3.connect(sqlite_store.path) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of open files")
def test_a_connection_that_cannot_be_opened_is_a_message(sqlite_store: SqliteStore) -> None:
    create_client(sqlite_store, "a")
    with sqlite_store.reading(), no_more_files():  # the pool has no other connection
        with pytest.raises(StoreUnavailable, match="unable to open"):
            sqlite_store.first(IDS, {})
        with pytest.raises(StoreUnavailable, match="unable to open"):
            sqlite_store.add(TOKEN, token(1))
    assert sqlite_store.first(IDS, {}) == ("a",)


@contextmanager
def no_more_files() -> Iterator[None]:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
