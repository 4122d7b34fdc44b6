"""What load balancers ask."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import falcon
import pytest
from falcon.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from dkimctl.errors import UsageError
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientState, change_state, create_client
from dkimctl.service.database import open_store
from dkimctl.service.health import HealthEndpoints, serving_metrics
from ports import free_port


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_they_need_no_token_and_are_not_cached(client, path):
    answer, head = client.simulate_get(path), client.simulate_head(path)
    assert (answer.status_code, answer.json) == (200, {"message": "OK"})
    assert (head.status_code, head.content) == (200, b"")
    assert answer.headers["Cache-Control"] == head.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_service_without_its_database_is_alive_but_not_ready(sqlite_store, is_moved):
    client = TestClient(create_app(sqlite_store))
    if is_moved:
        sqlite_store.path.rename(sqlite_store.path.with_suffix(".away"))
        time.sleep(0.2)  # it is looked at ten times a second
    else:
        sqlite_store.close()
        sqlite_store.path.write_bytes(b"not a database at all" * 1000)
    answer = client.simulate_get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"message": "The database does not answer."}
    assert client.simulate_get("/healthz").status_code == 200


def test_a_database_that_stands_still_is_asked_by_one_thread_only(store, monkeypatch):
    monkeypatch.setattr("dkimctl.service.health._DATABASE_LIMIT", 0.05)
    go, asked = threading.Event(), []

    class StandingStore:
        @contextmanager
        def reading(self):
            asked.append(1)
            go.wait(30)
            with store.reading() as connection:
                yield connection

    app = falcon.App()
    app.add_route("/readyz", HealthEndpoints(StandingStore()), suffix="ready")
    client = TestClient(app)
    assert [client.simulate_get("/readyz").status_code for _ in range(5)] == [503] * 5
    assert len(asked) == 1
    go.set()
    deadline = time.monotonic() + 10
    while client.simulate_get("/readyz").status_code != 200:
        assert time.monotonic() < deadline


def test_where_no_thread_can_be_had_the_service_is_not_ready(client, monkeypatch):
    monkeypatch.setattr("dkimctl.service.health.start_daemon", lambda _work, _name: None)
    assert client.simulate_get("/readyz").status_code == 503


def samples(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("dkimctl_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


# A process that counts where the environment says.
WORKER = """
import sys
from pathlib import Path
from falcon.testing import TestClient
from dkimctl.service.app import load_app
from dkimctl.service.database import open_store
client = TestClient(load_app(lambda: open_store(Path(sys.argv[1]))))
client.simulate_get("/guess")
client.simulate_delete("/send/123")
"""


def test_all_processes_count_together_also_after_they_have_ended(tmp_path):
    path, port = tmp_path / "service.db", free_port()
    with closing(open_store(path)) as store:
        change_state(store, create_client(store).client_id, ClientState.DISABLED)
    with serving_metrics(f"127.0.0.1:{port}", partial(open_store, path)):
        directory = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert directory.stat().st_mode & 0o077 == 0
        for number in (1, 2):
            subprocess.run([sys.executable, "-c", WORKER, path], check=True)
            scraped = samples(port)
            for labels in (("other", "404"), ("/send/{delivery_id}", "401")):
                assert scraped["http_requests_total", *labels] == number
            assert (scraped["clients", "active"], scraped["clients", "disabled"]) == (0, 1)
        path.write_bytes(b"no database" * 1000)
        assert ("clients", "active") not in samples(port)
    for bind in (":9100", "a:0", "a:99999", "192.0.2.1:9100"):
        with (
            pytest.raises(UsageError, match="in --metrics-bind"),
            serving_metrics(bind, open_store),
        ):
            pass
    assert not directory.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
