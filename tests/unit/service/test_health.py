"""What load balancers ask, metrics, and the application for another WSGI server."""

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
from dkimctl.service.clients import ClientState, change_state, create_client, issue_token
from dkimctl.service.database import open_store
from dkimctl.service.health import HealthEndpoints, serving_metrics
from dkimctl.service.key_pairs import Passphrase
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


# As another WSGI server does.
SERVER = """
import sys
from falcon.testing import TestClient
from dkimctl.service.app import create_app
headers = {"Authorization": f"Bearer {sys.argv[1]}", "X-Forwarded-For": "192.0.2.7"}
domains = [{"sign_domain": "a.example"}, {"sign_domain": "b.example"}]
answer = TestClient(create_app()).simulate_post(
    "/domain/dkim", json={"domains": domains}, headers=headers, remote_addr="10.0.0.1"
)
print(answer.status_code, answer.json["message"])
"""


@pytest.fixture
def run_server(tmp_path):
    path = tmp_path / "service.db"
    with closing(open_store(path, Passphrase(b"ours"))) as store:
        create_client(store, "me")
        token = issue_token(store, "me", time.time())

    def run(**settings):
        known = {
            "DATABASE": str(path), "PASSPHRASE": "ours", "MAX_DOMAINS": "1", "KEY_THREADS": "0",
            "TRUSTED_PROXIES": "10.0.0.1, ",
        }  # fmt: skip
        own = {f"DKIMCTL_SERVICE_{name}": text for name, text in (known | settings).items()}
        words = [sys.executable, "-c", SERVER, token]
        return subprocess.run(words, env=os.environ | own, capture_output=True, text=True)

    return run


def test_another_server_runs_the_service_with_the_settings_of_the_environment(run_server):
    done = run_server()
    assert done.stdout == "400 domains has 2 entries; at most 1 are allowed.\n"
    (line,) = done.stderr.splitlines()
    assert " status=400 " in line
    assert " address=192.0.2.7 client_id=me " in line


@pytest.mark.parametrize(
    ("settings", "status", "message"),
    [
        ({"MAX_DOMAINS": "ten"}, 4, "in DKIMCTL_SERVICE_MAX_DOMAINS: the value is not a number"),
        ({"KEY_THREADS": "1025"}, 4, "in DKIMCTL_SERVICE_KEY_THREADS: the value is not a number"),
        ({"TRUSTED_PROXIES": "a\x1b"}, 4, "in DKIMCTL_SERVICE_TRUSTED_PROXIES: invalid address"),
        ({"PASSPHRASE": "theirs"}, 4, "encrypted with another passphrase"),
        ({"PASSPHRASE": ""}, 4, "are encrypted with a passphrase"),
        ({"DATABASE": "postgresql://u:hush@127.0.0.1:1/x"}, 1, "cannot use the service data"),
    ],
)
def test_a_worker_of_another_server_is_started_again_only_if_that_can_help(
    run_server, settings, status, message
):
    done = run_server(**settings)
    assert (done.returncode, done.stdout) == (status, "")  # gunicorn gives up after 4
    assert message in done.stderr
    assert "\nhint: " in done.stderr
    assert not any(text in done.stderr for text in ("Traceback", "hush", "\x1b"))
