"""What load balancers ask."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import falcon
import pytest
from falcon.testing import TestClient

from dkimctl.service.app import create_app
from dkimctl.service.health import ReadyResource


class StandingStore:
    """A database that does not answer until `go` is set."""

    def __init__(self, store):
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
def test_they_need_no_token(client, path):
    answer = client.simulate_get(path)
    assert (answer.status_code, answer.json) == (200, {"message": "OK"})
    assert answer.headers["Cache-Control"] == "no-store"
    head = client.simulate_head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert client.simulate_post(path).status_code == 405
    assert client.simulate_post(path).headers["Allow"] == "GET, HEAD"


def test_a_service_without_its_database_is_alive_but_not_ready(sqlite_store):
    client = TestClient(create_app(sqlite_store))
    sqlite_store.close()
    sqlite_store.path.write_bytes(b"not a database at all" * 1000)
    answer = client.simulate_get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"message": "The database does not answer."}
    assert client.simulate_get("/healthz").status_code == 200


def test_a_database_that_stands_still_is_asked_by_one_thread_only(store):
    standing = StandingStore(store)
    app = falcon.App()
    app.add_route("/readyz", ReadyResource(standing, limit=0.05))
    client = TestClient(app)
    assert [client.simulate_get("/readyz").status_code for _ in range(5)] == [503] * 5
    assert standing.asked == 1
    standing.go.set()
    deadline = time.monotonic() + 10
    while client.simulate_get("/readyz").status_code != 200:
        assert time.monotonic() < deadline


def test_where_no_thread_can_be_had_the_service_is_not_ready(client, monkeypatch):
    monkeypatch.setattr("dkimctl.service.health.start_daemon", lambda _work, _name: None)
    assert client.simulate_get("/readyz").status_code == 503
