"""One line for each request, whole and without secrets."""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
import sys
import threading
import time

import pytest
from falcon.testing import TestClient

from dkimctl.errors import UsageError
from dkimctl.service import access_log
from dkimctl.service.access_log import LogHandler, TrustedProxies, describe_failure, write_line
from dkimctl.service.app import create_app
from dkimctl.service.server import _guarded

SERVICE = logging.getLogger("dkimctl.service")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def client(store, clock, make_key, lines):
    proxies = TrustedProxies(["127.0.0.1"])
    app = create_app(store, clock=clock, make_key=make_key, proxies=proxies)
    return TestClient(app, headers={"X-Forwarded-For": "192.0.2.7"})


@pytest.fixture
def lines(capfd):
    """A function that gives the lines of the log."""
    before = SERVICE.handlers, SERVICE.propagate
    SERVICE.handlers, SERVICE.propagate = [LogHandler()], False
    access_log._writer = None

    def read():
        access_log._writer._finish()
        return capfd.readouterr().err.splitlines()

    yield read
    access_log._writer = None
    SERVICE.handlers, SERVICE.propagate = before


def test_a_registration(credentials, register, lines):
    answer = register(*[{"sign_domain": "a.example", "selector": "s"}] * 2, {"sign_domain": "bad"})
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO request method=POST path=/domain/dkim "
        rf"status=200 seconds=[0-9.e-]+ bytes={len(answer.content)} address=unix "
        rf"client_id={credentials.client_id} entries=3 results=201:1,400:1,409:1 "
        rf"request_id={answer.headers['X-Request-ID']}",
        lines()[-1],
    )


def test_a_failure_has_the_id_of_its_request(store, token, lines):
    def broken_clock():
        raise RuntimeError("hush")

    client = TestClient(create_app(store, clock=broken_clock, proxies=TrustedProxies()))
    answer = client.simulate_post("/domain/dkim", headers={"Authorization": f"Bearer {token}"})
    failure, request = lines()[-2:]
    assert re.search(r"Z ERROR a request failed: RuntimeError at test_access_log.py:\d+ ", failure)
    for line in (failure, request):
        assert line.endswith(f" request_id={answer.headers['X-Request-ID']}")


def test_another_request_id_is_replaced(client, lines):
    given = ["", "a b", "a\nb", "x" * 65, 'a"b', "é"]
    answers = [client.simulate_get("/healthz", extras={"HTTP_X_REQUEST_ID": x}) for x in given]
    for answer, line in zip(answers, lines(), strict=True):
        assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-ID"])
        assert line.endswith(f" request_id={answer.headers['X-Request-ID']}")


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_whatever_is_sent_a_line_is_short_and_has_no_secret(
    client, credentials, token, basic, lines
):
    hostile = {
        "X-Forwarded-For": "1.2.3.4\x1b[2J, evil", "X-Request-ID": "\x1b]0;evil\x07",
        "User-Agent": "evil", "Referer": "evil",
    }  # fmt: skip
    for more, client_id, secret in (
        (hostile, credentials.client_id, "evil-secret"),
        ({}, credentials.client_id, credentials.secret),
        ({}, "\x1b\n\u202e😀" * 1000, "evil-secret"),
    ):
        client.simulate_post(
            "/oauth2/token", body="grant_type=client_credentials",
            headers={**FORM, **more, "Authorization": basic(client_id, secret)},
        )  # fmt: skip
    client.simulate_get("/" + "\x1b\n\u202e😀 status=200 " * 1000, query_string="evil=1")
    client.simulate_request("EVIL" * 100, "/domain/dkim", body='{"evil": 1}',
                            headers={"Authorization": f"Bearer {token}"})  # fmt: skip
    answers = [line for line in lines() if "/oauth2/token status=200" not in line]
    assert len(answers) == 4
    assert " status=400 " in answers[0]
    assert f" client_id={credentials.client_id} " in answers[0], "a failed login names the client"
    for line in answers:
        assert line.isprintable()
        assert len(line.encode()) < 4096, "what a pipe keeps whole"
        assert " status=200 status" not in line
        assert not {"evil", token, credentials.secret} & set(re.findall(r"[\w-]+", line.lower()))


WRITER = """
import sys, threading
from dkimctl.service.access_log import write_line
def write():
    for number in range(200):
        write_line("INFO", "request", {"who": sys.argv[1], "text": "x" * 3000})
threads = [threading.Thread(target=write) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
"""


def test_lines_of_many_threads_and_processes_do_not_mix():
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
    assert len(lines) == 3 * 4 * 200
    assert all(line.endswith(b" text=" + b"x" * 3000 + b"\n") for line in lines)
    assert all(line.count(b"request") == 1 for line in lines)


def test_the_log_goes_on_after_stderr_could_not_be_written(lines, monkeypatch):
    failed = threading.Event()

    def fail(*_):
        failed.set()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(os, "write", fail)
        write_line("INFO", "lost", {})
        assert failed.wait(10)
    write_line("INFO", "kept", {"a": 'x y="1"', "b": "", "c": "ü"})
    (line,) = lines()
    assert line.endswith(r""" INFO kept a="x y=\"1\"" b="" c=ü""")


def test_lines_that_nobody_reads_are_dropped_and_counted(lines, monkeypatch):
    monkeypatch.setattr("dkimctl.service.access_log._MAX_WAITING", 10)
    is_read, write = threading.Event(), os.write

    def wait(*arguments):
        is_read.wait(10)
        return write(*arguments)

    with monkeypatch.context() as context:
        context.setattr(os, "write", wait)
        for _ in range(200):
            write_line("INFO", "request", {"text": "x" * 1000})
        is_read.set()
        deadline = time.monotonic() + 10
        while access_log._writer._dropped:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)  # until that is written as well
    written = lines()
    assert len(written) < 30
    assert written[-1].endswith(f" number={200 - (len(written) - 1)}")


def test_a_failure_outside_the_application_is_500_without_what_it_quotes(caplog):
    started = []

    def fail(*_):
        raise ValueError("hush")

    assert _guarded(fail, {}, lambda *head: started.append(head)) == [b""]  # type: ignore[arg-type]
    assert started == [("500 Internal Server Error", [("Content-Length", "0")])]
    assert "a request failed: ValueError at test_access_log.py:" in caplog.text
    assert "hush" not in caplog.text


def test_a_failure_is_described_in_one_line_without_what_it_quotes():
    assert describe_failure(UsageError("a\nb", hint="c")) == "a\\x0ab"
    with pytest.raises(ValueError, match="hush") as caught:
        int("hush")
    assert describe_failure(caught.value).startswith("ValueError at test_access_log.py:")
    assert describe_failure(ValueError("hush")) == "ValueError"


@pytest.mark.parametrize(
    ("peer", "header", "expected"),
    [
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),  # not a proxy
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.9", "198.51.100.9"),  # the client wrote the first
        ("10.0.0.1", "1.2.3.4,198.51.100.9 , 10.2.0.1", "198.51.100.9"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "192.0.2.1, " + "10.0.0.2, " * 50_000 + "10.0.0.3", "10.0.0.2"),  # too long
        ("2001:db8::1", "2001:DB8::0:99", "2001:db8::99"),
        ("::ffff:10.0.0.1", "::ffff:198.51.100.9", "198.51.100.9"),
        ("fe80::1%eth0", None, "fe80::1"),
        ("", "198.51.100.9", "unix"),
        *(
            ("10.0.0.1", no_address, "10.0.0.1")
            for no_address in (
                "", ",", "unknown", "198.51.100.9:80", "[2001:db8::9]", "\x1b[2J", "\u0661.2.3.4",
                "1.2.3.4\n5.6.7.8", "198.51.100.9, evil", "9" * 100_000, "," * 100_000,
            )
        ),
    ],
    ids=range(21),
)  # fmt: skip
def test_the_last_address_that_no_trusted_proxy_has(peer, header, expected):
    environ = {"REMOTE_ADDR": peer} | ({} if header is None else {"HTTP_X_FORWARDED_FOR": header})
    proxies = TrustedProxies(["10.0.0.0/8", "2001:db8::1"])
    assert proxies.client_address(environ) == expected
    if not peer:  # who can open the socket
        assert TrustedProxies(["unix"]).client_address(environ) == header
