"""What load balancers ask."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest
from falcon.testing import TestClient

from dkimctl.service.app import create_app
from dkimctl.service.database import Store
from dkimctl.service.health import DatabaseProbe


class StandingStore:
    """A database that does not answer until `go` is set."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.go = threading.Event()
        self.asked = 0

    @contextmanager
    def reading(self):
        self.asked += 1
        self.go.wait(30)
        with self._store.reading() as connection:
            yield connection


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_they_need_no_token(client: TestClient, path: str) -> None:
    answer = client.simulate_get(path)
    assert (answer.status_code, answer.json) == (200, {"message": "OK"})
    assert answer.headers["Cache-Control"] == "no-store"
    head = client.simulate_head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert client.simulate_post(path).status_code == 405
    assert client.simulate_post(path).headers["Allow"] == "GET, HEAD"


def test_a_service_without_its_database_is_alive_but_not_ready(
    sqlite_store: Store,
) -> None:
    client = TestClient(create_app(sqlite_store))
    sqlite_store.close()
    sqlite_store.path.write_bytes(b"not a database at all" * 1000)
    answer = client.simulate_get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"message": "The database does not answer."}
    assert client.simulate_get("/healthz").status_code == 200


def test_a_database_that_stands_still_is_asked_by_one_thread_only(store: Store) -> None:
    standing = StandingStore(store)
    probe = DatabaseProbe(standing)
    started = time.monotonic()
    for _ in range(5):
        assert not probe.succeeds_within(0.05)
    assert time.monotonic() - started < 5
    assert standing.asked == 1
    standing.go.set()
    assert probe.succeeds_within(10)


def test_where_no_thread_can_be_had_the_service_is_not_ready(store: Store) -> None:
    assert not DatabaseProbe(store, lambda _work, _name: None).succeeds_within(10)


def test_the_sandbox_has_no_metrics(store: Store) -> None:
    assert TestClient(create_app(store)).simulate_get("/metrics").status_code == 404
