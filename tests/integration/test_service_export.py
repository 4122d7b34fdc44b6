"""`dkimctl service export` and `service registration`, as operators use them."""

from __future__ import annotations

import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from dkimctl.service import registrations
from dkimctl.service.clients import create_client, list_clients
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import Passphrase, make_key
from dkimctl.service.registrations import StoredRegistration

DATA = ("--data", "service.db")
TO_OUT = ("service", "export", "--format", "opendkim", "--output-dir", "out")
EXPORT = (*TO_OUT, *DATA)
PASSPHRASE = "correct horse battery"
EXAMPLE = ("example.com", "s1")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signer runs there")


@pytest.fixture(scope="module")
def pair():
    return make_key(1024)


@pytest.fixture
def fill(cli, pair):
    """Register names in the data file, whose client is "first"; keywords replace fields."""

    def fill(*names, passphrase=None, **fields):
        encryptor = Passphrase(passphrase.encode()) if passphrase else None
        client_id = fields.pop("client_id", "first")
        location = fields.pop("location", cli.home / "service.db")
        with closing(open_store(location, encryptor)) as store:
            if client_id not in {client.client_id for client in list_clients(store)}:
                create_client(store, client_id)
            for name in names:
                known = {
                    "key_len": 1024, "start_date": "2021-01-01T00:00+00:00", "default": 0,
                    "enable": True, "value": pair.value,
                    "regist_date": "2021-01-01T00:00:00+00:00",
                }  # fmt: skip
                registration = StoredRegistration(client_id, *name, **(known | fields))
                assert registrations.add_all(store, {registration: pair.private_key})

    return fill


def key_files(cli):
    return {file.name: file.read_bytes() for file in (cli.home / "out" / "keys").iterdir()}


def require_whole(out: Path, pair) -> int:
    """Fail unless the tables that the configuration names lead to whole keys; gives how many."""
    lines = (out / "opendkim.conf").read_text().splitlines()
    paths = {name: Path(path.removeprefix("file:")) for name, path in map(str.split, lines)}
    keys = dict(map(str.split, paths["KeyTable"].read_text().splitlines()))
    signing = dict(map(str.split, paths["SigningTable"].read_text().splitlines()))
    for name in signing.values():
        assert Path(keys[name].rsplit(":", 1)[1]).read_bytes() == pair.private_key
    return len(signing)


def test_a_summary_says_what_was_exported_and_what_was_not(cli, fill):
    fill(EXAMPLE, ("two.example", "s1"))
    fill(("example.com", "s2"), start_date="2099-01-01T00:00+00:00")
    fill(("example.com", "s3"), enable=False)
    fill(("example.com", "s0"), start_date="2020-01-01T00:00+00:00")
    first, second = cli(*EXPORT), cli(*EXPORT)
    rest = "1 superseded, 1 not yet in effect, 1 disabled"
    assert (first.status, first.out, second.status, second.out) == (0, "", 0, "")
    assert sorted(first.err.strip().split(", ")) == sorted(
        f"dkimctl: 2 keys exported, {rest}, 5 files written".split(", ")
    )
    assert second.err == first.err.replace("5 files written", "nothing has changed")
    assert cli(*EXPORT, "--quiet").err == ""


def test_encrypted_keys_are_exported_plain_with_the_passphrase_alone(cli, fill, pair):
    fill(EXAMPLE, passphrase=PASSPHRASE)
    for environment in ({}, {"DKIMCTL_SERVICE_PASSPHRASE": "wrong"}):
        done = cli(*EXPORT, env=environment)
        assert done.status == 2
        assert "DKIMCTL_SERVICE_PASSPHRASE" in done.err
        assert not (cli.home / "out").exists()
    assert cli(*EXPORT, env={"DKIMCTL_SERVICE_PASSPHRASE": PASSPHRASE}).status == 0
    assert key_files(cli) == {"s1._domainkey.example.com": pair.private_key}


def test_keys_in_postgresql_are_exported(cli, fill, pair, postgresql_database):
    fill(EXAMPLE, ("two.example", "s1"), location=postgresql_database)
    database = ("--database", postgresql_database.text)
    disabled = cli("service", "registration", "disable", "two.example", "s1", *database)
    listed = cli("service", "registration", "list", *database)
    done = cli(*TO_OUT, *database)
    assert (disabled.status, listed.status, done.status) == (0, 0, 0)
    assert "two.example\ts1\tfirst\t1024\t" in listed.out
    assert key_files(cli) == {"s1._domainkey.example.com": pair.private_key}
    assert "1 key exported, 1 disabled" in done.err


def test_a_domain_of_two_clients_and_a_default_that_nobody_chose_are_warnings(cli, fill):
    fill(EXAMPLE, regist_date="2020-01-01T00:00:00+00:00")
    fill(("example.com", "s2"), ("second.example", "s1"), client_id="second", default=1)
    done = cli(*EXPORT)
    assert done.status == 0
    assert "registered by several clients: 1 domain (example.com)" in done.err
    assert "not used for mail of domains without a key: registrations of second" in done.err
    assert key_files(cli).keys() == {"s1._domainkey.example.com", "s1._domainkey.second.example"}
    chosen = cli(*EXPORT, "--third-party-client", "second")
    assert "not used" not in chosen.err
    [table] = [t for t in (cli.home / "out").glob("SigningTable.*") if "*" in t.read_text()]
    assert "* s1._domainkey.second.example\n" in table.read_text()
    none = cli(*EXPORT, "--third-party-client", "first")
    assert (none.status, "no registration in effect" in none.err) == (0, True)
    unknown = cli(*EXPORT, "--third-party-client", "third")
    assert (unknown.status, "does not exist" in unknown.err) == (1, True)


def test_a_killed_export_leaves_whole_tables(cli, fill, pair):
    fill(*((f"d{number}.example", "s1") for number in range(200)))
    out, random_ = cli.home / "out", random.Random(18)
    assert cli(*EXPORT).status == 0
    began = time.monotonic()
    assert cli(*EXPORT).status == 0
    duration = time.monotonic() - began
    killed = 0
    for number in range(40):
        if number >= 10 and killed >= 3:  # a busy machine needs more attempts
            break
        with closing(sqlite3.connect(cli.home / "service.db")) as connection, connection:
            connection.execute("UPDATE registrations SET selector = ?", (f"t{number}",))
        process = cli.start(*EXPORT)
        time.sleep(duration * random_.uniform(0.4, 2.0))
        killed += process.poll() is None
        process.kill()
        process.wait()
        assert require_whole(out, pair) == 200
    assert killed >= 3
    assert cli(*EXPORT).status == 0
    assert require_whole(out, pair) == 200
    assert not list(out.rglob("*.tmp"))


def test_exports_at_once_wait_for_each_other(cli, fill, pair):
    fill(*((f"d{number}.example", "s1") for number in range(100)))
    processes = [cli.start(*EXPORT) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert require_whole(cli.home / "out", pair) == 100


def test_an_interrupted_export_leaves_nothing_half(cli, fill, pair):
    fill(*((f"d{number}.example", "s1") for number in range(500)))
    process = cli.start(*EXPORT)
    while not (cli.home / "out" / "keys").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert not list((cli.home / "out").rglob("*.tmp"))
    assert not (cli.home / "out" / "opendkim.conf").exists()


def test_registrations_are_listed_with_filters(cli, fill):
    fill(("b.example", "s1"), ("a.example", "s1"))
    fill(("b.example", "s2"), client_id="second", default=1, enable=False)

    def listed(*words):
        done = cli("service", "registration", "list", *words, *DATA)
        assert (done.status, done.err) == (0, "")
        return done

    lines = [line.split("\t") for line in listed().out.splitlines()]
    assert [line[:3] for line in lines] == [
        ["a.example", "s1", "first"], ["b.example", "s1", "first"], ["b.example", "s2", "second"],
    ]  # fmt: skip
    assert lines[2][3:] == [
        "1024", "2021-01-01T00:00+00:00", "1", "disabled", "2021-01-01T00:00:00+00:00",
    ]  # fmt: skip
    assert listed("--domain", "A.example").out.startswith("a.example\ts1\tfirst\t")
    assert len(listed("--domain", "A.example").out.splitlines()) == 1
    chosen = listed("--client", "second", "--domain", "b.example", "--format", "json").json
    assert [(one["selector"], one["enable"]) for one in chosen["registrations"]] == [("s2", False)]
    assert listed("--client", "third", "--format", "json").json == {"registrations": []}
    assert "PRIVATE" not in listed("--format", "json").out


def test_a_registration_is_disabled_enabled_and_deleted(cli, fill):
    fill(EXAMPLE)

    def operate(operation, *words):
        return cli("service", "registration", operation, *words, *DATA)

    def states():
        return [line.split("\t")[6] for line in operate("list").out.splitlines()]

    assert operate("disable", "Example.COM", "S1").status == 0
    assert states() == ["disabled"]
    assert operate("enable", *EXAMPLE).status == 0
    assert states() == ["enabled"]
    unasked = operate("delete", *EXAMPLE)
    assert (unasked.status, "add --yes" in unasked.err) == (2, True)
    assert operate("delete", *EXAMPLE, "--yes").status == 0
    assert states() == []
    for operation in ("enable", "disable", "delete"):
        done = operate(operation, *EXAMPLE)
        assert (done.status, "s1 of example.com is not registered" in done.err) == (1, True)
    fill(EXAMPLE)  # can be registered again


@pytest.mark.parametrize(("answer", "status", "left"), [("n", 1, 1), ("y", 0, 0)])
def test_delete_asks_on_a_terminal(cli, fill, on_terminal, answer, status, left):
    fill(EXAMPLE)
    words = ["service", "registration", "delete", *EXAMPLE, *DATA]
    question = "Delete the selector s1 of example.com, with its private key?"
    assert on_terminal(words, [(question, answer)])[0] == status
    listed = cli("service", "registration", "list", *DATA).out
    assert len(listed.splitlines()) == left
