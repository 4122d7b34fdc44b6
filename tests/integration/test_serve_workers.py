"""`dkimctl serve` with several processes, and gunicorn itself with our worker."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from processes import LIMIT, ServeProcess

if sys.platform == "win32":
    pytest.skip("gunicorn does not run on Windows", allow_module_level=True)

REQUEST = b"GET /oauth2/token HTTP/1.1\r\nHost: x\r\n\r\n"
WSGI = """
import os, time
def app(environ, start_response):
    time.sleep(float(environ["QUERY_STRING"] or 0))
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture
def service(cli) -> Iterator[ServeProcess]:
    service = ServeProcess(cli, "--workers", 2)
    yield service
    service.stop()


def status_of(url: str) -> int:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=LIMIT)) as connection:
        connection.request("GET", "/oauth2/token")
        return connection.getresponse().status


def children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def wait_for(condition) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_says_once_where_it_listens(service):
    assert service.said.count("serving on") == service.said.count("then log in") == 1
    assert status_of(service.url) == 405


def test_registrations_of_all_workers_are_in_one_database(service, cli):
    environment = service.create_client()
    entries = (f"- {{sign_domain: d{number}.example.com, selector: s1}}\n" for number in range(40))
    cli.write("domains.yaml", "".join(entries))
    for state in ("one", "other"):  # what was registered by the first, the second gets as well
        own = environment | {"DKIMCTL_STATE_DIR": str(cli.home / state)}
        done = cli("register", "domains.yaml", "--batch-size", 4, "--format", "json", env=own)
        assert done.status == 0, done.err
        assert done.out.count('"setting_values"') == 40


@pytest.mark.parametrize("workers", [1, 2])
def test_a_directory_for_metrics_that_is_missing_is_a_usage_error(cli, workers):
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(cli.home / "absent")}
    done = cli("serve", "--port", 0, "--data", "service.db", "--workers", workers, env=environment)
    assert done.status == 2
    assert "in PROMETHEUS_MULTIPROC_DIR: " in done.err


def _metrics(url: str) -> str:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=LIMIT)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_workers_count_together_and_leave_nothing_behind(cli, tmp_path):
    cli.environment["TMPDIR"] = str(tmp_path)
    shared = Path("/dev/shm")
    service = ServeProcess(cli, "--workers", 2)
    try:
        for _ in range(20):
            assert status_of(service.url) == 405
        counted = 'dkimctl_http_requests_total{path="/oauth2/token",status="405"} 20.0'
        assert all(counted in _metrics(service.url) for _ in range(6))
        # Those of this service: other tests run services at the same time.
        maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in children(service.pid))
        made = [path for path in shared.glob("dkimctl-metrics-*") if f"{path}/" in maps]
        assert made
        os.kill(min(children(service.pid)), signal.SIGTERM)
        wait_for(lambda: counted in _metrics(service.url))
    finally:
        service.stop()
    assert not any(path.exists() for path in made)
    assert not list(tmp_path.glob("dkimctl-metrics-*"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_worker_that_was_killed_is_replaced(service):
    wait_for(lambda: len(children(service.pid)) == 2)
    before = children(service.pid)
    os.kill(min(before), signal.SIGKILL)
    wait_for(lambda: len(children(service.pid) - before) == 1)
    assert {status_of(service.url) for _ in range(10)} == {405}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_what_gunicorn_says_is_in_the_log_as_json(cli):
    service = ServeProcess(cli, "--workers", 2, "--log-format", "json")
    try:
        wait_for(lambda: len(children(service.pid)) == 2)
        before = children(service.pid)
        os.kill(service.pid, signal.SIGHUP)  # gunicorn sets up its log again
        wait_for(lambda: len(children(service.pid) - before) == len(children(service.pid)) == 2)
        os.kill(min(children(service.pid)), signal.SIGKILL)
        wait_for(lambda: "SIGKILL" in service.said)
    finally:
        service.stop()
    lines = [line for line in service.said.splitlines() if not line.startswith("dkimctl: ")]
    assert [json.loads(line)["level"] for line in lines] == ["ERROR"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_workers(service, number):
    with socket.create_connection(urlsplit(service.url).netloc.split(":")) as connection:
        connection.sendall(REQUEST[:-2])
        time.sleep(0.5)
        os.kill(service.pid, number)
        time.sleep(0.5)
        connection.sendall(b"\r\n")
        answer = HTTPResponse(connection)
        answer.begin()
        assert (answer.status, answer.getheader("Connection")) == (405, "close")
    assert service.wait() == 0
    assert "Traceback" not in service.said
    with pytest.raises(ConnectionRefusedError):
        status_of(service.url)


@pytest.mark.parametrize(
    ("code", "words", "message"),
    [
        ("import sys; sys.modules['gunicorn'] = None", [], "--workers needs gunicorn"),
    ],
)
def test_what_cannot_be(cli, code, words, message):
    cli.at_start(code)
    done = cli("serve", "--workers", 2, "--data", "service.db", "--port", 0, *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("data", ["missing/service.db", "notes.txt"])
def test_data_that_cannot_be_used_is_told_before_it_listens(cli, data):
    cli.write("notes.txt", "these are notes\n")
    done = cli("serve", "--workers", 2, "--data", data, "--port", 0)
    assert done.status == 2
    assert "serving on" not in done.err


@contextmanager
def gunicorn(home: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    (home / "wsgi.py").write_text(WSGI)
    bind = ["--bind", f"unix:{home}/socket", "--workers", "2", *words]
    command = [sys.executable, "-m", "gunicorn", *bind, "--no-control-socket", "wsgi:app"]
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(command, cwd=home, stderr=log) as process,
    ):
        try:
            wait_for((home / "socket").exists)
            yield process, home / "socket"
        finally:
            process.terminate()


def test_gunicorn_with_our_worker_on_a_unix_socket(tmp_path):
    worker = ["--worker-class", "dkimctl.service.server.workers.Worker", "--threads", "4"]
    with gunicorn(tmp_path, *worker) as (process, path):
        connections = [socket.socket(socket.AF_UNIX) for _ in range(8)]
        for connection in connections:
            connection.connect(str(path))
            connection.sendall(b"GET /?1 HTTP/1.1\r\n\r\n")
        pids = set()
        for connection in connections:
            answer = HTTPResponse(connection)
            answer.begin()
            pids.add(answer.read())
            connection.close()
        assert 1 <= len(pids) <= 2
        process.terminate()
        assert process.wait(LIMIT) == 0
    assert not re.search("Traceback|ERROR", (tmp_path / "log").read_text())
