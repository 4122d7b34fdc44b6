"""The data of a running service: backed up, restored, moved away; and a client's new secret."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from documents import example
from processes import ServeProcess

pytestmark = pytest.mark.slow


def _post(service: ServeProcess, path: str, body: str, authorization: str) -> tuple[int, dict]:
    headers = {
        "Authorization": authorization,
        "Content-Type": "application/x-www-form-urlencoded",
    }
    with closing(HTTPConnection(service.url.removeprefix("http://"), timeout=30)) as connection:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def _token_answer(service: ServeProcess, client_id: str, secret: str) -> tuple[int, dict]:
    basic = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    return _post(service, "/oauth2/token", "grant_type=client_credentials", f"Basic {basic}")


def _get_status(service: ServeProcess, path: str) -> int:
    with closing(HTTPConnection(service.url.removeprefix("http://"), timeout=30)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


class Customer:
    """A client of the service that registers one domain after the other."""

    def __init__(self, service: ServeProcess) -> None:
        self._service = service
        created = json.loads(service.operate("client", "create").out)
        self.client_id, self.secret = created["client_id"], created["client_secret"]
        self.token = _token_answer(service, self.client_id, self.secret)[1]["access_token"]
        self.registered: list[str] = []

    def register(self, domain: str | None = None) -> str:
        """The code of the result, or the status of the answer if that is not 200."""
        domain = domain or f"{len(self.registered)}.example.com"
        body = json.dumps({"domains": [{"sign_domain": domain, "selector": "s1"}]})
        status, answer = _post(self._service, "/domain/dkim", body, f"Bearer {self.token}")
        if status != 200:
            return str(status)
        code = answer["items"][0]["result"]["code"]
        if code == "201":
            self.registered.append(domain)
        return str(code)


@pytest.fixture
def service(cli):
    service = ServeProcess(cli)
    yield service
    service.stop()


def _domains(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT sign_domain FROM registrations")}


def test_a_copy_of_a_running_service_has_all_that_was_answered_before(cli, service, shell) -> None:
    """By the commands of docs/service.md."""
    customer = Customer(service)
    assert customer.register() == "201"  # so that each copy has a registration
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            assert customer.register() == "201"

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for _ in range(3):
            before = set(customer.registered)
            (cli.home / "backup.db").unlink(missing_ok=True)
            shell(example(".backup"), {})
            assert before <= _domains(cli.home / "backup.db")
    finally:
        stop.set()
        thread.join()
    service.stop()
    for file in cli.home.glob("service.db*"):
        file.unlink()
    (cli.home / "backup.db").rename(cli.home / "service.db")
    customer._service = restored = ServeProcess(cli)
    try:
        assert customer.register(customer.registered[0]) == "409"
        assert customer.register("b.example") == "201"
    finally:
        restored.stop()


def _delete_all(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _replace_by_a_copy(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


def _replace_by_another_programs(path: Path) -> None:
    with closing(sqlite3.connect(path.with_name("other.db"))) as connection:
        connection.execute("CREATE TABLE other (x)")
    path.with_name("other.db").replace(path)


def _delete_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody delete files in use")
@pytest.mark.parametrize(
    "spoil",
    [
        _delete_all,
        _replace_by_a_copy,
        _replace_by_another_programs,
        _delete_log,
    ],
)
def test_after_the_data_file_has_gone_nothing_is_answered_from_it(
    cli, service, spoil: Callable[[Path], None]
) -> None:
    customer = Customer(service)
    assert customer.register("a.example") == "201"
    spoil(cli.home / "service.db")
    assert [customer.register() for _ in range(5)] == ["500"] * 5
    assert customer.register("a.example") == "500", "nor 409"
    assert _token_answer(service, customer.client_id, customer.secret)[0] == 500
    assert _get_status(service, "/readyz") == 503
    assert re.search(r"data file .*service\.db(-wal)? was moved or replaced", service.said)
    assert customer.registered == ["a.example"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody rename files in use")
def test_a_data_file_that_is_put_back_is_used_again(cli, service) -> None:
    customer = Customer(service)
    (cli.home / "service.db").rename(cli.home / "away.db")
    assert customer.register("a.example") == "500"
    (cli.home / "away.db").rename(cli.home / "service.db")
    assert customer.register("b.example") == "201"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody delete files in use")
def test_a_restart_after_the_log_was_deleted_has_all_that_was_answered(cli, service) -> None:
    customer = Customer(service)
    for number in range(5):
        assert customer.register(f"{number}.example") == "201"
    _delete_log(cli.home / "service.db")
    assert customer.register("late.example") == "500"
    service.stop()
    assert set(customer.registered) <= _domains(cli.home / "service.db")
    restarted = ServeProcess(cli)
    try:
        customer._service = restarted
        assert customer.register("0.example") == "409"
        assert customer.register("new.example") == "201"
    finally:
        restarted.stop()


def test_a_client_has_two_secrets_until_the_overlap_ends(cli, service) -> None:
    customer = Customer(service)
    done = service.operate(
        "client", "rotate-secret", customer.client_id, "--overlap", "3s", "--output", "new.txt"
    )
    ends = time.monotonic() + 3
    assert done.out == f"{customer.client_id}\n"
    assert "the previous secret is valid for 3 s more" in done.err
    new = (cli.home / "new.txt").read_text().strip()
    assert new not in done.out + done.err
    assert _token_answer(service, customer.client_id, new)[0] == 200
    assert _token_answer(service, customer.client_id, customer.secret)[0] == 200
    time.sleep(max(0, ends - time.monotonic()) + 0.1)
    refused = (400, {"error": "invalid_client"})
    assert _token_answer(service, customer.client_id, customer.secret) == refused
    assert _token_answer(service, customer.client_id, new)[0] == 200
    assert customer.register() == "201", "its token stays valid"
