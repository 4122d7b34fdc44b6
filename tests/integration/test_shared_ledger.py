"""A ledger in PostgreSQL: what a team shares, and what happens without the server."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import shared_ledger
from dkimctl.cli.doctor_checks import check_ledger
from dkimctl.errors import LedgerError, LedgerUnavailable
from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.postgresql import Database
from dkimctl.ledger.tables import STEPS
from dkimctl.models import EventKind, key_of
from dkimctl.settings.profile import Profile
from documents import example
from postgresql import ledger_url, serving_postgresql

SPECS = "".join(f"- {{sign_domain: d{n}.example, selector: S1}}\n" for n in range(30))


@pytest.fixture(scope="module")
def server(needs_tool):
    with serving_postgresql(needs_tool) as server:
        yield server


@pytest.fixture
def ledger(cli, server):
    """The URL of an empty ledger, which `cli` uses."""
    url = cli.environment["DKIMCTL_LEDGER"] = ledger_url(server)
    return url


def summary(done) -> dict[str, int]:
    return json.loads(done.err)["summary"]


def error_of(done) -> str:
    (error,) = json.loads(done.err)["errors"]
    return f"{error['message']}; {error['hint']}"


def test_the_page_says_how_a_team_begins(cli, registering, server):
    for statement in example("CREATE ROLE", "sql").replace("dkimctl", "team").split(";\n")[:-1]:
        server.execute(statement)
    there = f"team@127.0.0.1:{server.port}/team"
    config = example("ledger: postgresql", "yaml").replace("dkimctl@db.example.com/dkimctl", there)
    cli.write("config.yaml", config)
    assert cli("register", "-", "--config", "config.yaml", stdin=SPECS).status == 0
    assert f"postgresql://{there}" in cli("status", "--config", "config.yaml").out


def test_all_machines_see_what_one_has_registered(cli, registering, ledger):
    assert cli("register", "-", stdin=SPECS).status == 0
    cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / "another machine")
    again = cli("register", "-", "--format", "json", stdin=SPECS.lower())
    assert (again.status, summary(again)) == (0, {"exists": 30})
    assert len(registering.entries) == 30
    listed = cli("list", "--format", "json").json
    assert [key["sign_domain"] for key in listed["items"]] == sorted(
        f"d{n}.example" for n in range(30)
    )
    assert {key["selector"] for key in listed["items"]} == {"S1"}
    assert not (cli.home / "another machine" / "ledger.db").exists()
    assert ledger in cli("status").out
    assert re.search("ledger +not checked", cli("doctor", "--offline").out)
    # As without --offline, which would look at the network as well.
    profile = Profile("default", base_url=registering.url, client_id="id")
    database = Database(ledger)
    doctor = SimpleNamespace(profile=profile, find_ledger_place=lambda: database)
    (remark,) = check_ledger(doctor)
    database.disconnect()
    assert remark.message == f"{ledger} is intact (30 domains)"


def test_what_the_service_answers_is_kept_although_postgresql_has_no_nul(cli, registering, ledger):
    registering.regist_date = "\0" * 3
    assert cli("register", "-", stdin="- {sign_domain: example.com, selector: s}\n").status == 0
    assert cli("show-dns", "--format", "value").status == 0


def test_the_second_waits_and_learns_who_holds_the_lock(cli, registering, ledger):
    is_asked, may_answer = threading.Event(), threading.Event()

    def on_request(request):
        is_asked.set()
        may_answer.wait(30)

    registering.on_request = on_request
    cli.write("specs.yaml", SPECS)
    first = cli.start("register", "specs.yaml", stdout=subprocess.DEVNULL)
    assert is_asked.wait(30)
    cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / "another machine")
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    second = cli.start("register", "specs.yaml", **streams)
    line = second.stderr.readline()
    may_answer.set()
    assert re.search(rf"\(process {first.pid} of \S+@\S+, since 20\d\d-", line), line
    second.stderr.read()
    assert (first.wait(30), second.wait(30)) == (0, 0)
    second.stderr.close()
    assert len(registering.entries) == 30


class TestWithoutTheServer:
    def test_nothing_is_sent(self, cli, registering, ledger):
        port = re.search(r":(\d+)/", ledger)[1]
        cli.environment["DKIMCTL_LEDGER"] = ledger.replace(port, "1")
        done = cli("register", "-", "--format", "json", stdin=SPECS)
        assert (done.status, done.out, registering.requests) == (4, "", [])
        assert "cannot connect to the ledger postgresql://dkimctl@127.0.0.1:1/" in error_of(done)
        assert "~/.pgpass" in error_of(done)

    def test_that_is_lost_in_the_middle_the_next_run_settles_what_was_sent(
        self, cli, registering, server, ledger
    ):
        def on_request(request):
            if len(registering.entries) == 20:
                server.stop(crash=True)
            registering.code = "409" if len(registering.entries) == 30 else "201"

        registering.on_request = on_request
        words = ("register", "-", "--batch-size", 10, "--concurrency", 1, "--format", "json")
        stopped = cli(*words, stdin=SPECS)
        server.start()
        assert stopped.status == 4
        assert "the connection to the ledger" in error_of(stopped)
        assert len(registering.entries) == 20
        done = cli(*words, stdin=SPECS)
        assert (done.status, summary(done)) == (0, {"exists": 20, "created": 10})
        assert len(registering.entries) == 40, "only what had no answer in the ledger"


def test_nothing_is_done_under_a_lock_whose_connection_was_lost(server, ledger):
    account = {"base_url": "https://api.example", "client_id": "me"}
    database = Database(ledger)
    lock = {"on_wait": pytest.fail, "purpose": "rotate", "patience": 0.0}
    with database.lock(**account, **lock), Ledger.open(database, **account) as opened:
        server.execute(f"SELECT pg_terminate_backend({database._connection.info.backend_pid})")
        other = Database(ledger)
        with other.lock(**account, **lock):  # it is free
            for use in (lambda: opened.note_replacements({key_of("a.example", "s2"): "s1"}),
                        lambda: Ledger.open_existing(database, **account)):  # fmt: skip
                with pytest.raises(LedgerUnavailable, match=r"connection .* was lost"):
                    use()
        other.disconnect()
    with Ledger.open_existing(database, **account) as opened:  # a new connection, without a lock
        assert opened.begun_successors() == {}
    database.disconnect()


def test_a_pooler_is_refused(monkeypatch, ledger):
    """It gives its clients another process ID than the server has."""
    monkeypatch.setattr("psycopg.ConnectionInfo.backend_pid", 1)
    with pytest.raises(LedgerError, match="behind a connection pooler"):
        Ledger.open(Database(ledger), base_url="https://api.example", client_id="me")


def test_who_waits_for_another_writer_sees_what_that_one_wrote(server, ledger):
    server.execute("ALTER DATABASE ledger SET default_transaction_isolation = 'serializable'")
    account = {"base_url": "https://api.example", "client_id": "me"}
    key = key_of("a.example", "s1")

    def look(verdict):
        database = Database(ledger)
        with Ledger.open(database, **account) as opened:
            for _ in range(30):
                opened.note_looks({key: verdict})
                opened.note_policy("the defaults")
            events = [event.what for event in opened.events()]
            assert events.count(EventKind.POLICY) == 1
        database.disconnect()

    with ThreadPoolExecutor() as pool:
        list(pool.map(look, ("published", "missing")))


def test_a_newer_version_upgrades_the_tables_and_their_rows(monkeypatch, ledger):
    account = {"base_url": "https://api.example", "client_id": "me"}
    database = Database(ledger)
    with Ledger.open(database, **account) as opened:
        opened.note_replacements({key_of("a.example", "s2"): "s1"})
    database.disconnect()
    step = """
ALTER TABLE closed_key ADD more INTEGER;
INSERT INTO closed_key (account_id, sign_domain, selector, closed_at, more)
  SELECT account_id, sign_domain, replaces, '2026-11-21T12:00:00+00:00', 1 FROM history
"""
    monkeypatch.setattr("dkimctl.ledger.postgresql.STEPS", (*STEPS, step))
    monkeypatch.setattr("dkimctl.ledger.postgresql._VERSION", len(STEPS) + 1)
    for _ in range(2):
        database = Database(ledger)
        with Ledger.open(database, **account) as opened:
            assert [closed.key for closed in opened.closed_keys()] == [key_of("a.example", "s1")]
        database.disconnect()


def test_a_user_may_have_no_home_directory(monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    database = Database("postgresql://127.0.0.1:1/ledger?sslmode=verify-full")
    with pytest.raises(LedgerUnavailable, match="cannot connect"):
        Ledger.open_existing(database, base_url="https://api.example", client_id="me")


def test_a_database_that_cannot_be_used_is_refused_before_anything_is_sent(
    cli, registering, server, ledger
):
    assert cli("register", "-", stdin=SPECS).status == 0
    sent = len(registering.requests)
    stranger = ledger.replace("dkimctl@", "stranger@")
    server.execute("DROP ROLE IF EXISTS stranger")
    server.execute("CREATE ROLE stranger LOGIN")
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    latin = ledger.replace("/ledger", "/latin")
    read_only = "ALTER DATABASE ledger SET default_transaction_read_only = on"
    newer = "UPDATE dkimctl.version SET number = 99"
    for url, change, status, what in (
        (stranger, "SELECT 1", 4, "permission denied"),
        (latin, "SELECT 1", 2, "has the encoding LATIN1"),
        (ledger, newer, 2, "written by a newer dkimctl"),
        (ledger, f"UPDATE dkimctl.version SET number = 8; {read_only}", 4, "is the primary"),
    ):
        for statement in change.split(";"):
            server.execute(statement, "ledger")
        done = cli("register", "-", "--ledger", url, "--format", "json", stdin="- new.example\n")
        assert (done.status, what in error_of(done)) == (status, True), done.err
    assert len(registering.requests) == sent


def test_a_team_at_work_at_the_same_time_doubles_nothing(tmp_path, server):
    assert shared_ledger.race(tmp_path, server, 60) == []


def test_kills_and_a_server_that_crashes_lose_and_double_nothing(tmp_path, server):
    work = {"kills": 2, "stops": 2, "domains": 100, "seed": 2}
    assert shared_ledger.rehearse(tmp_path, server, **work) == []


@pytest.mark.nightly
def test_many_kills_and_crashes_lose_and_double_nothing(tmp_path, needs_tool):
    with serving_postgresql(needs_tool, fsync="on") as server:
        work = {"kills": 60, "stops": 10, "domains": 1500, "seed": 1}
        assert shared_ledger.rehearse(tmp_path, server, **work) == []
