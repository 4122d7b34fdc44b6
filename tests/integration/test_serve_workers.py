"""The processes of `dkimctl serve`: how they start, share, end, and are replaced."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from processes import LIMIT, ServeProcess, wait_for

if sys.platform == "win32":
    pytest.skip("Windows has no signals for others", allow_module_level=True)

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
REQUEST = b"GET /oauth2/token HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(params=[1, 2])
def service(cli, request) -> Iterator[ServeProcess]:
    service = ServeProcess(cli, "--workers", request.param)
    yield service
    service.stop()


def status_of(url: str, path: str = "/oauth2/token") -> int:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=LIMIT)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


@needs_proc
def test_it_says_once_where_it_listens_when_all_are_ready(service):
    assert service.said.startswith(f"dkimctl: serving on {service.url} ")
    assert service.said.count("serving on") == service.said.count("then log in") == 1
    assert status_of(service.url) == 405


def test_registrations_of_all_workers_are_in_one_database(cli):
    service = ServeProcess(cli, "--workers", 2)
    try:
        environment = service.create_client()
        entries = (f"- {{sign_domain: d{n}.example.com, selector: s1}}\n" for n in range(40))
        cli.write("domains.yaml", "".join(entries))
        for state in ("one", "other"):  # what was registered by the first, the second gets as well
            own = environment | {"DKIMCTL_STATE_DIR": str(cli.home / state)}
            done = cli("register", "domains.yaml", "--batch-size", 4, "--format", "json", env=own)
            assert done.status == 0, done.err
            assert done.out.count('"setting_values"') == 40
    finally:
        service.stop()


@needs_proc
def test_a_worker_that_was_killed_is_replaced(service):
    before = children(service.pid)
    os.kill(min(before), signal.SIGKILL)
    wait_for(lambda: len(children(service.pid) - before) == 1)
    assert {status_of(service.url) for _ in range(10)} == {405}


def test_workers_that_are_not_forked(cli):
    """As on macOS, on Windows, and from Python 3.14 on."""
    cli.at_start("import multiprocessing\nmultiprocessing.set_start_method('spawn', force=True)\n")
    service = ServeProcess(cli, "--workers", 2)
    try:
        assert status_of(service.url) == 405
    finally:
        service.stop()
    assert "warn" not in service.said


@needs_proc
def test_workers_end_with_a_service_that_was_killed(service):
    workers = children(service.pid)
    os.kill(service.pid, signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    with pytest.raises(ConnectionRefusedError):
        status_of(service.url)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_after_what_was_asked(service, number):
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


@pytest.mark.parametrize("data", ["missing/service.db", "notes.txt"])
def test_data_that_cannot_be_used_is_told_before_it_listens(cli, data):
    cli.write("notes.txt", "these are notes\n")
    done = cli("serve", "--workers", 2, "--data", data, "--port", 0)
    assert done.status == 2
    assert "serving on" not in done.err


def test_a_port_in_use_is_told(service, cli):
    port = urlsplit(service.url).port
    done = cli("serve", "--data", "service.db", "--port", port)
    assert done.status == 2
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in done.err
    assert "another port with --port" in done.err


@pytest.mark.parametrize("workers", [1, 2])
def test_a_log_that_nobody_reads_stops_nothing(cli, workers):
    """A pipe at stderr takes 64 KiB, here some 400 lines."""
    words = ("serve", "--port", 0, "--data", "service.db", "--workers", workers)
    process = cli.start(*words, stderr=subprocess.PIPE)
    try:
        line = process.stderr.readline().decode()
        url = line.split()[3]
        for _ in range(2):
            process.stderr.readline()
        with closing(HTTPConnection(urlsplit(url).netloc, timeout=LIMIT)) as connection:
            for _ in range(3000):
                connection.request("GET", "/healthz")
                assert connection.getresponse().read() == b'{"message": "OK"}'
        process.terminate()
        assert process.wait(LIMIT) == 0
        rest = process.stderr.read()
        assert rest.count(b" INFO request ") < 3000
        assert all(one.isprintable() for one in rest.decode().splitlines())
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
