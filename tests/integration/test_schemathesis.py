"""Schemathesis, which knows nothing but the OpenAPI description, against the live service."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing

import httpx
import pytest

from dkimctl.service.clients import ClientCredentials, add_delivery, create_client
from dkimctl.service.database import open_store
from processes import ServeProcess

pytestmark = pytest.mark.nightly

# Without the checks that do not fit the interface.
CONFIG = """
[[operations]]
include-operation-id = "registerDomains"
# An invalid entry is answered with 200, and has a code of its own (interface 7.3).
checks = { negative_data_rejection.enabled = false }

[[operations]]
include-operation-id = "issueToken"
# Without credentials, the status is 400 and not 401 (interface 7.1).
checks = { ignored_auth.enabled = false, missing_required_header.enabled = false }
"""
# The values come from the environment, as `ps` shows the words of a command to everybody.
LOGIN = """
[auth.openapi]
basic = { username = "${TEST_CLIENT_ID}", password = "${TEST_CLIENT_SECRET}" }
bearer = { bearer = "${TEST_TOKEN}" }
clientCredentials = { bearer = "${TEST_TOKEN}" }
"""
OPTIONS = (
    "--phases", "examples,coverage,fuzzing", "--max-examples", "40", "--continue-on-failure",
    "--seed", "1", "--generation-deterministic",
    "--report", "json", "--report-json-path", "report.json", "--warnings", "off", "--no-color",
)  # fmt: skip
FAILURE = "(a request|registering) failed: "  # in the log of the service


@pytest.fixture
def service(cli):
    service = ServeProcess(cli)
    yield service
    service.stop()


@pytest.fixture
def login(cli, service):
    """The environment that LOGIN reads: credentials, and a token."""
    with closing(open_store(cli.home / "service.db")) as store:
        credentials = create_client(store)
        add_delivery(store, credentials.client_id, "123")  # as in the example
    return {
        "TEST_CLIENT_ID": credentials.client_id,
        "TEST_CLIENT_SECRET": credentials.secret,
        "TEST_TOKEN": get_token(service.url, credentials),
    }


def get_token(url: str, credentials: ClientCredentials) -> str:
    answer = httpx.post(
        f"{url}/oauth2/token",
        data={"grant_type": "client_credentials"},
        auth=(credentials.client_id, credentials.secret),
        trust_env=False,
    )
    return str(answer.json()["access_token"])


@pytest.fixture
def run(cli, service, needs_tool):
    """Have Schemathesis try the service; gives how many of its requests got 2xx, by operation."""
    program = needs_tool("schemathesis")

    def run(config: str, environment: dict[str, str]) -> dict[str, int]:
        cli.write("schemathesis.toml", config)
        done = subprocess.run(
            [program, "run", f"{service.url}/openapi.yaml", "--url", service.url, *OPTIONS],
            cwd=cli.home, env=cli.environment | environment, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads((cli.home / "report.json").read_text())
        assert report["test_cases"]["generated"] > 150
        assert report["errors"] == []
        rates = report["valid_rates"].items()
        return {name: sum(rate["accepted"] for rate in phases.values()) for name, phases in rates}

    return run


def test_with_a_token_every_answer_is_as_described(run, service, login):
    accepted = run(CONFIG + LOGIN, login)
    assert len(accepted) == 3
    assert all(accepted.values())
    assert not re.search(FAILURE, service.said)


def test_without_a_token_every_answer_is_as_described(run, service):
    accepted = run(CONFIG, {})
    assert not any(accepted.values())
    assert not re.search(FAILURE, service.said)
