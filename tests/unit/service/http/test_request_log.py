"""One line for each request, whole and without secrets."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from datetime import datetime
from pathlib import Path

import pytest
from falcon.testing import TestClient
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database import Store
from dkimctl.service.http.addresses import TrustedProxies
from dkimctl.service.http.log_output import Fields, LogFormat, log_to_stderr, write_line
from dkimctl.service.http.monitoring import Monitoring
from dkimctl.service.key_pairs import KeyMaker
from dkimctl.text.escaping import printable
from fakes import Clock

SERVICE = logging.getLogger("dkimctl.service")
FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|[^\s"=\\]+)')


@pytest.fixture
def client(
    store: Store, clock: Clock, make_key: KeyMaker, log_format: LogFormat | None
) -> TestClient:
    monitoring = Monitoring(log_format, TrustedProxies.parse(["127.0.0.1"]))
    app = create_app(store, clock=clock, make_key=make_key, monitoring=monitoring)
    return TestClient(app, headers={"X-Forwarded-For": "192.0.2.7"})


@pytest.fixture(params=LogFormat)
def log_format(request: pytest.FixtureRequest) -> LogFormat | None:
    """How requests are logged."""
    return request.param


@pytest.fixture
def lines(log_format: LogFormat | None, capfd) -> Iterator[Callable[[], list[str]]]:
    """A function that gives the lines of the log so far."""
    before = SERVICE.handlers, SERVICE.propagate
    log_to_stderr(log_format or LogFormat.TEXT)

    def read() -> list[str]:
        return capfd.readouterr().err.splitlines()

    yield read
    SERVICE.handlers, SERVICE.propagate = before


@pytest.mark.parametrize("log_format", [LogFormat.JSON])
def test_a_registration_as_json(
    client: TestClient,
    credentials: ClientCredentials,
    token: str,
    register,
    lines,
) -> None:
    entries = [{"sign_domain": "a.example", "selector": "s"}] * 2 + [{"sign_domain": "bad"}]
    answer = register(*entries)
    (line,) = lines()
    logged = json.loads(line)
    moment = datetime.fromisoformat(logged.pop("time"))
    assert abs(moment.timestamp() - time.time()) < 60
    assert 0 <= logged.pop("seconds") < 60
    assert logged == {
        "level": "INFO",
        "message": "request",
        "method": "POST",
        "path": "/domain/dkim",
        "status": 200,
        "bytes": len(answer.content),
        "address": "unix",
        "client_id": credentials.client_id,
        "entries": 3,
        "results": {"201": 1, "400": 1, "409": 1},
        "request_id": answer.headers["X-Request-ID"],
    }


@pytest.mark.parametrize("log_format", [LogFormat.TEXT])
def test_a_request_as_text(client: TestClient, lines) -> None:
    client.simulate_delete("/send/a%0ab c", headers={"X-Request-ID": "abc-1"}, query_string="q=1",
                           remote_addr="127.0.0.1")  # fmt: skip
    (line,) = lines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO request method=DELETE path=/send/a%0Ab%20c "
        r"status=401 seconds=[0-9.e-]+ bytes=27 address=192.0.2.7 request_id=abc-1",
        line,
    )


@pytest.mark.parametrize("log_format", [LogFormat.JSON])
@pytest.mark.parametrize("given_id", ["", "a b", "a\nb", "x" * 65, 'a"b', "é"], ids=range(6))
def test_another_request_id_is_replaced(client: TestClient, lines, given_id: str) -> None:
    answer = client.simulate_get("/healthz", extras={"HTTP_X_REQUEST_ID": given_id})
    logged = json.loads(lines()[0])
    assert logged["request_id"] == answer.headers["X-Request-ID"]
    assert re.fullmatch("[0-9a-f]{16}", logged["request_id"])


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_whatever_is_sent_a_line_is_short_and_has_no_secret(
    client: TestClient, credentials: ClientCredentials, token: str, basic, lines
) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    hostile = {
        "X-Forwarded-For": "1.2.3.4\x1b[2J, evil", "X-Request-ID": "\x1b]0;evil\x07",
        "User-Agent": "evil", "Referer": "evil",
    }  # fmt: skip
    client.simulate_post(
        "/oauth2/token", body="grant_type=client_credentials&evil=1",
        headers={**form, **hostile, "Authorization": basic(credentials.client_id, "evil-secret")},
    )  # fmt: skip
    client.simulate_post(
        "/oauth2/token", body="grant_type=client_credentials",
        headers={**form, "Authorization": basic(credentials.client_id, credentials.secret)},
    )  # fmt: skip
    client.simulate_post(
        "/oauth2/token", body="grant_type=client_credentials",
        headers={**form, "Authorization": basic("\x1b\n\u202e😀" * 1000, "evil-secret")},
    )  # fmt: skip
    client.simulate_get("/" + "\x1b\n\u202e😀 status=200 " * 1000, query_string="evil=1")
    client.simulate_request("EVIL" * 100, "/domain/dkim", body='{"evil": 1}',
                            headers={"Authorization": f"Bearer {token}"})  # fmt: skip
    answers = lines()
    assert len(answers) == 7
    for line in answers:
        assert line.isprintable()
        assert len(line.encode()) < 4096, "what a pipe keeps whole"
        assert " status=200 status" not in line
        assert not {"evil", token, credentials.secret} & set(re.findall(r"[\w-]+", line.lower()))
        for secret in (token, credentials.secret, "evil-secret"):
            assert secret not in line


@given(client_id=st.text())
def test_a_line_can_be_read_back(client_id: str) -> None:
    fields = {"client_id": printable(client_id), "number": 5, "results": {"201": 4}}
    text, as_json = (_written(log_format, fields) for log_format in LogFormat)
    assert json.loads(as_json).items() >= fields.items()
    values = {name: json.loads(v) if v[0] == '"' else v for name, v in FIELD.findall(text)}
    assert values == {"client_id": printable(client_id), "number": "5", "results": "201:4"}


def _written(log_format: LogFormat, fields: Fields) -> str:
    """The line that is written, without its end."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as file:
        with redirect_stderr(file):
            write_line(log_format, "INFO", "m", fields)
        file.seek(0)
        (line,) = file.read().splitlines()
    return line


@pytest.mark.parametrize("log_format", [None])
def test_quiet_logs_failures_alone(client: TestClient, lines) -> None:
    client.simulate_get("/healthz")
    client.simulate_post("/oauth2/token", body="grant_type=client_credentials",
                         content_type="application/x-www-form-urlencoded")  # fmt: skip
    (line,) = lines()
    assert line.endswith(" WARNING failed login address=unix")


@pytest.mark.parametrize("log_format", [LogFormat.JSON])
def test_a_failure_is_logged_in_the_same_format_with_the_id_of_its_request(
    store: Store, token: str, lines
) -> None:
    def broken_clock() -> float:
        raise RuntimeError("hush")

    monitoring = Monitoring(LogFormat.JSON)
    client = TestClient(create_app(store, clock=broken_clock, monitoring=monitoring))
    client.simulate_post("/domain/dkim", headers={"Authorization": f"Bearer {token}"})
    failure, request = map(json.loads, lines())
    assert failure["level"] == "ERROR"
    assert failure["message"].startswith("a request failed: RuntimeError at test_request_log.py:")
    assert request["status"] == 500
    assert failure["request_id"] == request["request_id"]


WRITER = """
import logging, sys, threading
from dkimctl.service.http.log_output import LogFormat, log_to_stderr
log_to_stderr(LogFormat.JSON)
logger = logging.getLogger("dkimctl.service.x")
def write():
    for number in range(500):
        logger.error("request", extra={"fields": {"who": sys.argv[1], "text": "x" * 3000}})
threads = [threading.Thread(target=write) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
"""


def test_lines_of_many_threads_and_processes_do_not_mix() -> None:
    read, write = os.pipe()
    words = [sys.executable, "-c", WRITER]
    writers = [subprocess.Popen([*words, str(n)], stderr=write, stdout=-3) for n in range(3)]
    os.close(write)
    lines: list[bytes] = []
    with os.fdopen(read, "rb") as pipe:
        reader = threading.Thread(target=lambda: lines.extend(pipe))
        reader.start()
        reader.join(60)
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = [json.loads(line) for line in lines]
    assert len(found) == 3 * 4 * 500
    assert all(len(logged["text"]) == 3000 for logged in found)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&1 | true"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_log_that_cannot_be_written_does_no_harm(redirection: str, tmp_path: Path) -> None:
    code = tmp_path / "writer.py"
    code.write_text(WRITER.replace('print("done")', f'open({str(tmp_path / "done")!r}, "w")'))
    subprocess.run(f"{sys.executable} {code} 0 {redirection}", shell=True, check=True, timeout=60)
    deadline = time.monotonic() + 60
    while not (tmp_path / "done").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
