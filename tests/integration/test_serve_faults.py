"""`dkimctl serve --faults`: the file, the announcement, and the clients' view."""

from __future__ import annotations

import base64
import json
import re
import time
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from processes import ServeProcess

BODY = json.dumps({"domains": [{"sign_domain": "example.com", "selector": "s1"}]})
HALF = "faults:\n  429: 0.25\n  502-after: 0.25\n"


def token_of(service: ServeProcess) -> str:
    """A token of a new client."""
    client = service.create_client()
    pair = f"{client['DKIMCTL_CLIENT_ID']}:{client['DKIMCTL_CLIENT_SECRET']}"
    headers = {
        "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    status, answer = post(service, "/oauth2/token", "grant_type=client_credentials", headers)
    assert status == 200
    return answer["access_token"]


def register(service: ServeProcess, token: str) -> tuple[int, dict]:
    return post(service, "/domain/dkim", BODY, {"Authorization": f"Bearer {token}"})


def post(service: ServeProcess, path: str, body: str, headers: dict[str, str]) -> tuple[int, dict]:
    host = service.url.removeprefix("http://")
    with closing(HTTPConnection(host, timeout=30)) as connection:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.fixture
def serve(cli):
    """Start the service, if wanted with the faults of a text, instead of the one before."""
    running = []

    def serve(faults: str | None = None) -> ServeProcess:
        while running:
            running.pop().stop()
        words = ["--faults", cli.write("faults.yaml", faults)] if faults is not None else []
        running.append(ServeProcess(cli, *words))
        return running[-1]

    yield serve
    while running:
        running.pop().stop()


def statuses(service: ServeProcess, token: str) -> list[int]:
    return [register(service, token)[0] for _ in range(30)]


def test_the_announced_seed_repeats_the_faults(serve):
    service = serve(HALF)
    assert service.said.count("429 25%, 502-after 25%") == 1
    seed = re.search(r"^dkimctl: faults with seed (\d+): ", service.said, re.MULTILINE)[1]
    token = token_of(service)
    first = statuses(service, token)
    assert len(set(first)) > 1
    assert statuses(serve(f"seed: {seed}\n{HALF}"), token) == first


def test_tokens_are_issued_where_every_registration_fails(serve):
    service = serve("any: 1")
    assert "drop-before 5.88%, drop-after 5.88%, 429 5.88%" in service.said
    assert token_of(service)


def test_a_request_dropped_after_processing_is_registered(serve):
    service = serve("{seed: 0, faults: {drop-after: 1}}")
    token = token_of(service)
    with pytest.raises(RemoteDisconnected):
        register(service, token)
    status, answer = register(serve(), token)
    assert (status, answer["items"][0]["result"]["code"]) == (200, "409")
    assert "setting_values" in answer["items"][0]


def test_a_request_dropped_before_processing_is_not_registered(serve):
    service = serve("{seed: 0, faults: {drop-before: 1}}")
    token = token_of(service)
    with pytest.raises(RemoteDisconnected):
        register(service, token)
    assert register(serve(), token)[1]["items"][0]["result"]["code"] == "201"


def test_a_slow_answer_takes_as_long_as_configured(serve):
    service = serve("{slow: 0.4s, faults: {slow: 1}}")
    token = token_of(service)
    start = time.monotonic()
    status, answer = register(service, token)
    assert time.monotonic() - start >= 0.4
    assert (status, answer["count"]) == (200, 1)


def test_without_the_option_no_faults_are_announced(serve):
    assert "faults" not in serve().said


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", ["1:1"]),
        ("[]\n", ["1:1"]),
        ("seed: 7\n", ["1:1"]),
        ("seed: seven\nslow: soon\nretry_after: -1\nany: 2\nfault: {}\n",
         ["1:7", "2:7", "3:14", "4:6", "5:1"]),
        ("any: 0.1\nfaults: {slow: 0.1}\nany: 0.1\n", ["2:1", "3:1"]),
        ("faults:\n  slow: '0.1'\n  505: 0.1\n  slow: 0\n  429:\n",
         ["2:9", "3:3", "4:3", "5:7"]),
        ("faults:\n  slow: 0.7\n  429: 0.7\n", ["2:3"]),
        ("slow: 25h\nany: 0.1\n", ["1:7"]),
        ("faults: {slow: 0.1\n", ["2:1"]),
        ("any: 0.1\n---\nany: 0.1\n", ["2:1"]),
    ],
)  # fmt: skip
def test_a_malformed_file_is_refused_before_the_start(cli, text, places):
    done = cli("serve", "--faults", cli.write("bad.yaml", text), "--data", "service.db")
    assert (done.status, done.out) == (2, "")
    positions = re.findall(r"^dkimctl: error: bad\.yaml:(\d+:\d+): \S", done.err, re.MULTILINE)
    assert positions == places
    assert done.err.count("hint: ") == len(places)
    assert not (cli.home / "service.db").exists()


def test_stdin_is_accepted_and_a_missing_file_refused(cli):
    done = cli("serve", "--faults", "-", stdin="any: 2")
    assert done.status == 2
    assert "<stdin>:1:6: " in done.err
    done = cli("serve", "--faults", "none.yaml")
    assert (done.status, done.err.splitlines()[0]) == (
        2, "dkimctl: error: no such file: none.yaml",
    )  # fmt: skip
