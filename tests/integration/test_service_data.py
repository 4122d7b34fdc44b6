"""The data of a running service: backed up, restored, moved away; and a client's new secret."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from dkimctl.service.database.opening import open_store
from postgresql import PostgresServer
from processes import LIMIT, ServeProcess

pytestmark = pytest.mark.slow

DATA = ("--data", "service.db")


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


def test_a_backup_beside_a_running_service_has_all_that_was_answered_before(cli, service) -> None:
    customer = Customer(service)
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            assert customer.register() == "201"

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for number in range(3):
            before = set(customer.registered)
            done = service.operate("backup", f"{number}.db")
            assert f"{number}.db has 1 client and" in done.err
            assert "its private keys are not encrypted" in done.err
            assert before <= _domains(cli.home / f"{number}.db")
    finally:
        stop.set()
        thread.join()
    assert cli("service", "restore", "2.db", "--data", "restored.db").status == 0
    listed = cli("service", "client", "list", "--data", "restored.db").out
    assert listed.startswith(f"{customer.client_id}\tactive\t")
    assert customer.secret not in cli("service", "audit", "--data", "restored.db").out


def test_a_restored_service_answers_as_before(cli, service) -> None:
    customer = Customer(service)
    assert customer.register("a.example") == "201"
    service.operate("backup", "backup.db")
    service.stop()
    for file in cli.home.glob("service.db*"):
        file.unlink()
    done = cli("service", "restore", "backup.db", *DATA)
    assert done.err == "dkimctl: restored 1 client and 1 registration to service.db\n"
    restored = ServeProcess(cli)
    try:
        customer._service = restored
        assert customer.register("a.example") == "403", "tokens are not in a backup"
        status, answer = _token_answer(restored, customer.client_id, customer.secret)
        assert status == 200
        customer.token = answer["access_token"]
        assert customer.register("a.example") == "409"
        assert customer.register("b.example") == "201"
    finally:
        restored.stop()
    actions = [line.split("\t")[2:] for line in cli("service", "audit", *DATA).out.splitlines()]
    assert actions == [
        ["client create", customer.client_id],
        ["register", "a.example s1"],
        ["backup", str(cli.home / "backup.db")],
        ["restore", str(cli.home / "backup.db")],
        ["register", "b.example s1"],
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("restore", "."), "not a regular file"),
        (("restore", "absent.db"), "no such file"),
        (("audit", "--since", "2026-01-01", "--purge-before", "2026-01-02"), "leave one out"),
        (("audit", "--purge-before", "2999-01-01"), "in the future"),
    ],
)
def test_what_makes_no_sense_is_refused(cli, words, problem: str) -> None:
    cli("service", "client", "create", *DATA)
    done = cli("service", *words, *DATA)
    assert (done.status, done.out) == (2, "")
    assert problem in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
def test_a_backup_may_have_any_name(cli) -> None:
    cli("service", "client", "create", "me", *DATA)
    name = os.fsdecode(b"b\xff.db")
    assert cli("service", "backup", name, *DATA).status == 0
    assert cli("service", "restore", name, "--data", "restored.db").status == 0
    assert cli("service", "client", "list", "--data", "restored.db").out.startswith("me\t")


def _wait_for_size(path: Path, size: int) -> None:
    deadline = time.monotonic() + LIMIT
    while not path.exists() or path.stat().st_size < size:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_restore_leaves_nothing_and_can_be_repeated(
    cli, service, kind: str, request: pytest.FixtureRequest
) -> None:
    customer = Customer(service)
    with closing(sqlite3.connect(cli.home / "service.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO registrations VALUES (?, 's', ?, 2048, '', 0, 1, ?, '', x'00')",
            ((f"{n}.example", customer.client_id, "v" * 400) for n in range(100_000)),
        )
    service.operate("backup", "backup.db")
    option = ["--data", "restored.db"]
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgresql")
        server.execute("DROP DATABASE IF EXISTS killed WITH (FORCE)")
        option = ["--database", server.create_database("killed").text]
    cli("service", "client", "list", *option)  # creates the tables of a database
    killed = cli.start("service", "restore", "backup.db", *option)
    if kind == "postgresql":  # which takes 4 s
        time.sleep(1.2)
    else:
        _wait_for_size(cli.home / "restored.db-wal", 4 << 20)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(30) == -signal.SIGKILL, "it was too fast to be killed"
    if kind == "postgresql" or (cli.home / "restored.db").exists():
        assert cli("service", "client", "list", *option).out == ""
        assert cli("service", "audit", *option).out == ""
    done = cli("service", "restore", "backup.db", *option)
    assert "restored 1 client and 100000 registrations" in done.err
    again = cli("service", "restore", "backup.db", *option)
    assert (again.status, again.out) == (2, "")
    assert "has clients already, and is not overwritten" in again.err


@pytest.mark.parametrize("words", [("backup", "-"), ("backup", ""), ("restore", "-")])
def test_a_backup_is_a_file(cli, words) -> None:
    assert cli("service", "client", "create", *DATA).status == 0
    done = cli("service", *words, *DATA)
    assert done.status == 2
    assert "must be a file" in done.err
    assert not (cli.home / "-").exists()


def test_a_restore_of_nothing_creates_nothing(cli) -> None:
    done = cli("service", "restore", "absent.db", *DATA)
    assert (done.status, done.out) == (2, "")
    assert "absent.db: there is no such file" in done.err
    assert not (cli.home / "service.db").exists()


def _delete(path: Path) -> None:
    path.unlink()


def _delete_all(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _replace_by_a_copy(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


def _replace_by_another_service(path: Path) -> None:
    open_store(path.with_name("other.db")).close()
    path.with_name("other.db").replace(path)


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
        _delete,
        _delete_all,
        _replace_by_a_copy,
        _replace_by_another_service,
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
