"""What Prometheus gets, read with its own parser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from falcon.testing import Result, TestClient
from prometheus_client.parser import text_string_to_metric_families

from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials, create_client, delete_client, disable_client
from dkimctl.service.database import Store
from dkimctl.service.http.addresses import parse_networks
from dkimctl.service.http.metrics_sharing import DIRECTORY, sharing_metrics
from dkimctl.service.http.monitoring import Monitoring
from dkimctl.service.key_pairs import KeyMaker
from fakes import Clock

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def client(store: Store, clock: Clock, make_key: KeyMaker) -> TestClient:
    monitoring = Monitoring()
    return TestClient(create_app(store, clock=clock, make_key=make_key, monitoring=monitoring))


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(client: TestClient) -> Samples:
    answer = client.simulate_get("/metrics", remote_addr="127.0.0.1")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return samples(answer.text)


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"dkimctl_{name}", frozenset(labels.items())]


def test_requests_keys_clients_and_failed_logins(
    client: TestClient,
    store: Store,
    credentials: ClientCredentials,
    other_credentials: ClientCredentials,
    request_token: Callable[..., Result],
    register: Callable[..., Result],
) -> None:
    register(
        {"sign_domain": "a.example", "key_len": 2048},
        {"sign_domain": "b.example"},
        {"sign_domain": "c.example"},
    )
    request_token(ClientCredentials(credentials.client_id, "wrong"))
    request_token(None)
    disable_client(store, other_credentials.client_id)
    deleted = create_client(store)
    delete_client(store, deleted.client_id)
    for number in range(50):
        client.simulate_get(f"/guess/{number}")
        client.simulate_delete(f"/send/{number}")
    found = scrape(client)
    requests = {
        (dict(labels)["path"], dict(labels)["status"]): number
        for (name, labels), number in found.items()
        if name == "dkimctl_http_requests_total"
    }
    assert requests == {
        ("/oauth2/token", "200"): 1,
        ("/oauth2/token", "400"): 2,
        ("/domain/dkim", "200"): 1,
        ("/send/{delivery_id}", "401"): 50,
        ("other", "404"): 50,
    }
    assert value(found, "http_request_duration_seconds_count", path="/domain/dkim") == 1
    assert value(found, "http_request_duration_seconds_bucket", path="other", le="+Inf") == 50
    assert value(found, "keys_made_total", key_len="2048") == 1
    assert value(found, "keys_made_total", key_len="1024") == 2
    assert value(found, "failed_logins_total") == 2
    assert value(found, "clients", state="active") == 1
    assert value(found, "clients", state="disabled") == 1
    assert value(found, "clients", state="deleted") == 1
    text = client.simulate_get("/metrics", remote_addr="127.0.0.1").text
    assert credentials.client_id not in text
    assert "_created" not in text


def test_without_the_database_the_rest_is_there(sqlite_store: Store) -> None:
    client = TestClient(create_app(sqlite_store, monitoring=Monitoring()))
    client.simulate_get("/healthz")
    sqlite_store.close()
    sqlite_store.path.write_bytes(b"no database" * 1000)
    found = scrape(client)
    assert value(found, "http_requests_total", path="/healthz", status="200") == 1
    assert not any(name == "dkimctl_clients" for name, _ in found)


@pytest.mark.parametrize(
    "peer", ["192.0.2.1", "10.0.0.1", "2001:db8::1", "", "localhost", "127.0.0.1.example"]
)
def test_for_other_peers_there_is_no_such_path(client: TestClient, peer: str) -> None:
    answer = client.simulate_get("/metrics", extras={"REMOTE_ADDR": peer})
    assert (answer.status_code, answer.json) == (404, {"message": "Not Found"})


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"]
)
def test_what_a_proxy_passes_on_is_refused(client: TestClient, header: str) -> None:
    answer = client.simulate_get("/metrics", headers={header: "127.0.0.1"}, remote_addr="127.0.0.1")
    assert answer.status_code == 404


def test_other_peers_may_be_allowed_instead(store: Store) -> None:
    monitoring = Monitoring(metrics_from=parse_networks(["192.0.2.0/24"]))
    client = TestClient(create_app(store, monitoring=monitoring))
    assert client.simulate_get("/metrics", remote_addr="192.0.2.9").status_code == 200
    assert client.simulate_get("/metrics", remote_addr="127.0.0.1").status_code == 404


WORKER = """
import sys
from pathlib import Path
from falcon.testing import TestClient
from dkimctl.service.app import create_app
from dkimctl.service.database import open_store
from dkimctl.service.http.monitoring import Monitoring
client = TestClient(create_app(open_store(Path(sys.argv[1])), monitoring=Monitoring()))
for _ in range(5):
    client.simulate_get("/healthz")
sys.stdout.write(client.simulate_get("/metrics", remote_addr="127.0.0.1").text)
"""


def test_workers_count_together_also_after_one_has_ended(sqlite_store: Store) -> None:
    with sharing_metrics():
        directory = Path(os.environ[DIRECTORY])
        assert directory.stat().st_mode & 0o077 == 0
        for number in range(1, 4):
            done = subprocess.run(
                [sys.executable, "-c", WORKER, str(sqlite_store.path)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            found = samples(done.stdout)
            assert value(found, "http_requests_total", path="/healthz", status="200") == 5 * number
            assert value(found, "clients", state="active") == 0
    assert not directory.exists()
    assert DIRECTORY not in os.environ


def test_a_directory_that_is_named_already_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    with sharing_metrics():
        assert os.environ[DIRECTORY] == str(tmp_path)
    assert tmp_path.exists()
    assert os.environ[DIRECTORY] == str(tmp_path)
