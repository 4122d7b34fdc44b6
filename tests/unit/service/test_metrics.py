"""What Prometheus gets, read with its own parser."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dkimctl.errors import UsageError
from dkimctl.service.clients import create_client, disable_client
from dkimctl.service.database import open_store
from dkimctl.service.health import serving_metrics
from ports import free_port

# A process that answers requests, and counts them where the environment says.
WORKER = """
import sys
from pathlib import Path
from falcon.testing import TestClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import create_client, issue_token
from dkimctl.service.database import open_store
from dkimctl.service.health import Metrics
import time
store = open_store(Path(sys.argv[1]))
client = TestClient(create_app(store, metrics=Metrics.if_shared()))
token = issue_token(store, create_client(store).client_id, time.time())
for number in range(5):
    client.simulate_get(f"/guess/{number}")
    client.simulate_delete(f"/send/{number}")
client.simulate_post("/oauth2/token", body="grant_type=client_credentials")
client.simulate_post("/domain/dkim", json={"domains": [{"sign_domain": "a.example"}]},
                     headers={"Authorization": f"Bearer {token}"})
"""


def samples(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("dkimctl_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_all_processes_count_together_also_after_they_have_ended(tmp_path):
    path, port = tmp_path / "service.db", free_port()
    with closing(open_store(path)) as store:
        disable_client(store, create_client(store).client_id)
    with serving_metrics(f"127.0.0.1:{port}", partial(open_store, path)):
        directory = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert directory.stat().st_mode & 0o077 == 0
        for number in (1, 2):
            subprocess.run([sys.executable, "-c", WORKER, path], check=True)
            found = samples(port)
            requests = {
                key[1:]: value for key, value in found.items() if key[0] == "http_requests_total"
            }
            assert requests == {
                ("other", "404"): 5 * number,
                ("/send/{delivery_id}", "401"): 5 * number,
                ("/oauth2/token", "400"): number,
                ("/domain/dkim", "200"): number,
            }
            assert found["http_request_duration_seconds_count", "/domain/dkim"] == number
            assert found["keys_made_total", "1024"] == number
            assert found["failed_logins_total",] == number
            assert (found["clients", "active"], found["clients", "disabled"]) == (number, 1)
        path.write_bytes(b"no database" * 1000)
        found = samples(port)
        assert ("clients", "active") not in found
        assert found["failed_logins_total",] == 2
    assert not directory.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


@pytest.mark.parametrize(
    "bind", ["", "9100", "localhost", "localhost:x", ":9100", "a:0", "a:99999"]
)
def test_it_takes_an_address_and_a_port(bind):
    with pytest.raises(UsageError, match="in --metrics-bind: "), serving_metrics(bind, open_store):
        pass


def test_an_address_that_cannot_be_had_is_told(tmp_path):
    with (
        pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1 port"),
        serving_metrics("192.0.2.1:9100", partial(open_store, tmp_path / "x")),
    ):
        pass
