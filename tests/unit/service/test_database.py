"""Where the service's data is, and what can go wrong with it."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from dkimctl.errors import UsageError
from dkimctl.service import schema
from dkimctl.service.clients import create_client, list_clients
from dkimctl.service.database import open_store
from dkimctl.service.location import read_location


def _refusal(location):
    with pytest.raises(UsageError) as caught:
        open_store(location)
    assert caught.value.hint
    if isinstance(location, Path):
        assert str(location) in caught.value.message
    return caught.value


def test_the_data_file_is_new_durable_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "new" / "deeper" / "service.db"
    with closing(open_store(path)) as store:
        create_client(store)
        if os.name == "posix":
            modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            assert (modes, stat.S_IMODE(path.parent.stat().st_mode)) == ({0o600}, 0o700)
        with store.reading() as connection:
            pragmas = {
                name: connection.execute(text(f"PRAGMA {name}")).scalar()
                for name in ("journal_mode", "foreign_keys", "busy_timeout", "secure_delete")
            }
        for is_durable, level in ((True, 2), (False, 1), (True, 2)):  # FULL, NORMAL
            with store.writing(durable=is_durable) as connection:
                assert connection.execute(text("PRAGMA synchronous")).scalar() == level
    expected = {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 10_000}
    assert pragmas == {**expected, "secure_delete": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody delete files in use")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_file_that_is_not_in_place_is_noticed_at_once_by_writes_and_reads(sqlite_store, suffix):
    create_client(sqlite_store, "before")
    Path(f"{sqlite_store.path}{suffix}").unlink()
    for operation in (create_client, list_clients):
        with pytest.raises(UsageError, match="was moved or replaced"):
            operation(sqlite_store)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- example.com\n" * 100, "not a database"),
        (["CREATE TABLE other (x)"], "of another program"),
        (["CREATE VIEW other AS SELECT 1"], "of another program"),
        (["PRAGMA application_id = 1"], "of another program"),
        (["PRAGMA user_version = 1"], "of another program"),
        (["PRAGMA application_id = 0x444B494D", "PRAGMA user_version = 99"], "newer"),
    ],
)
def test_a_file_of_something_else_is_refused_and_not_changed(tmp_path, content, message):
    path = tmp_path / "other.db"
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        with closing(sqlite3.connect(path)) as connection:
            for statement in content:
                connection.execute(statement)
            connection.commit()
    path.chmod(0o600)
    before = path.read_bytes()
    assert message in _refusal(path).message
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_file_that_other_users_can_access_is_refused(tmp_path):
    path = tmp_path / "it's.db"
    open_store(path).close()
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        refusal = _refusal(path)
        assert "other users" in refusal.message
        subprocess.run(refusal.hint.split("`")[1], shell=True, check=True)
        open_store(path).close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_file_that_cannot_be_written_is_refused(tmp_path, needs_tool):
    path = tmp_path / "service.db"
    open_store(path).close()
    path.chmod(0o400)
    script = "import pathlib, sys; from dkimctl.service.database import open_store;"
    words = [sys.executable, "-c", script + "open_store(pathlib.Path(sys.argv[1]))", path]
    if os.geteuid() == 0:  # file modes do not apply to root
        words = [needs_tool("setpriv"), "--bounding-set=-dac_override,-dac_read_search", *words]
    done = subprocess.run(words, capture_output=True, text=True)
    assert f"UsageError: {path}: the service data file is not writable" in done.stderr


def test_a_failed_transaction_is_rolled_back_and_reported_without_parameters(store):
    def insert_and_fail():
        with store.writing() as connection:
            row = "('lost', '', 'active', '', NULL, NULL)"
            connection.execute(text(f"INSERT INTO clients VALUES {row}"))
            connection.execute(text("INSERT INTO absent VALUES (:secret)"), {"secret": "hush"})

    with pytest.raises(UsageError) as caught:
        insert_and_fail()
    assert store.name in caught.value.message
    assert "hush" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert list_clients(store) == []


# Where it is.


@pytest.mark.parametrize(
    ("text", "name", "has_password"),
    [
        ("postgresql+psycopg://me@db.example/dkim", "postgresql://db.example/dkim", False),
        ("postgresql://me:hush@[::1]:5433/dkim", "postgresql://::1:5433/dkim", True),
        ("postgresql:///dkim?host=/run/pg&password=hush", "postgresql:///run/pg/dkim", True),
        ("postgresql://db/dkim?sslpassword=hush", "postgresql://db/dkim", True),
    ],
)
def test_a_url_is_shown_without_secrets_and_other_text_is_a_path(text, name, has_password):
    for path in ("service.db", "a b?c#d.db", "postgresql:x", "C:\\x\\y.db"):
        assert read_location(path) == Path(path)
    location = read_location(text)
    assert (location.name, location.has_password) == (name, has_password)
    assert "hush" not in repr(location)


@pytest.mark.parametrize(
    "text",
    [
        *("mysql://me:hush@host/x", "sqlite:///x.db?hush", "postgresql+psycopg2://me:hush@host/x"),
        *(
            f"postgresql+psycopg://{userinfo}@127.0.0.1/db"  # which are not encoded
            for userinfo in ("u:12/hush", "u:/hush", "u:12#hush", "u:1?hush", "u:a@/hush")
        ),
        *(
            f"postgresql://u:hush@{rest}"
            for rest in ("[::1", "host:port/x", "host:99999/x", "host/x?connect_timeout=a")
        ),
    ],
)
def test_a_url_that_is_not_of_postgresql_or_wrong_is_refused_without_quoting_it(text):
    with pytest.raises(UsageError) as caught:
        open_store(read_location(text))
    assert "hush" not in f"{caught.value.message} {caught.value.hint} {caught.value.__cause__!r}"


# PostgreSQL alone; the rest of the service's tests run on both.


@pytest.mark.slow
def test_a_database_is_opened_by_processes_at_once_and_refused_if_it_is_not_ours(postgresql):
    postgresql.execute("DROP DATABASE IF EXISTS fresh WITH (FORCE)")
    location = postgresql.create_database("fresh")
    postgresql.execute("CREATE TABLE clients (x integer)", "fresh")
    assert "another program: clients" in _refusal(location).message
    postgresql.execute("DROP TABLE clients", "fresh")
    with ThreadPoolExecutor(4) as pool:
        for store in pool.map(open_store, [location] * 4):
            store.close()
    postgresql.execute(f"UPDATE {schema.version} SET version_num = '9999'", "fresh")
    assert "newer dkimctl" in _refusal(location).message
    down = postgresql.url().replace(f":{postgresql.port}", ":1").replace("@", ":hush@")
    refusal = _refusal(read_location(down))
    assert "127.0.0.1:1" in refusal.message
    assert "hush" not in f"{refusal.message} {refusal!r} {refusal.__cause__!r}"


def _schema(engine):
    found = inspect(engine)
    return {
        table: (
            sorted((c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)),
            sorted(map(str, found.get_indexes(table))),
            found.get_pk_constraint(table)["constrained_columns"],
            [key["constrained_columns"] for key in found.get_foreign_keys(table)],
        )
        for table in sorted(found.get_table_names())
    }


@pytest.mark.slow
def test_migrations_make_what_new_data_has(store):
    engine = store._engine
    new = _schema(engine)
    assert "dkimctl_version" in new
    with engine.begin() as connection:  # as the first version was
        for change in (
            "DROP TABLE passphrases", "DROP TABLE dkimctl_version",
            "DROP INDEX ix_tokens_expires_at", "ALTER TABLE clients DROP COLUMN previous_hash",
            "ALTER TABLE clients DROP COLUMN previous_until",
        ):  # fmt: skip
            connection.execute(text(change))
        if store.path:
            connection.execute(text("PRAGMA user_version = 1"))
    if store.path:
        open_store(store.path).close()
        with engine.connect() as connection:  # the version of before refuses it
            assert connection.execute(text("PRAGMA user_version")).scalar() == 3
    else:  # where there was no such version
        with engine.begin() as connection:
            schema.prepare(connection, "", "")
    assert _schema(engine) == new
