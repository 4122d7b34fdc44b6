"""What is of PostgreSQL alone; the rest of the service's tests run on both."""

from __future__ import annotations

from contextlib import closing

import pytest
from sqlalchemy import create_engine, inspect, text

from dkimctl.errors import UsageError
from dkimctl.service import schema
from dkimctl.service.clients import create_client, list_clients
from dkimctl.service.database import open_store
from dkimctl.service.location import DatabaseUrl, read_location

pytestmark = pytest.mark.slow


def _refusal(location):
    with pytest.raises(UsageError) as caught:
        open_store(location)
    assert caught.value.hint
    return caught.value


@pytest.fixture
def new_database(postgresql):
    postgresql.execute("DROP DATABASE IF EXISTS fresh WITH (FORCE)")
    return postgresql.create_database("fresh")


def test_tables_of_another_program_are_refused(postgresql, new_database):
    postgresql.execute("CREATE TABLE clients (x integer)", "fresh")
    assert "another program: clients" in _refusal(new_database).message


def test_a_newer_version_is_refused(postgresql, new_database):
    open_store(new_database).close()
    postgresql.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'", "fresh")
    assert "newer dkimctl" in _refusal(new_database).message


def test_two_processes_that_open_a_new_database_at_once_both_succeed(new_database):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        for store in pool.map(open_store, [new_database] * 4):
            store.close()


def test_a_server_that_is_down_is_an_error_without_the_password(postgresql):
    url = postgresql.url().replace(f":{postgresql.port}", ":1").replace("@", ":hush@")
    location = read_location(url)
    assert isinstance(location, DatabaseUrl)
    refusal = _refusal(location)
    assert "127.0.0.1:1" in refusal.message
    assert "hush" not in f"{refusal.message} {refusal!r} {refusal.__cause__!r} {location!r}"


def test_the_encoding_of_the_database_does_not_matter(postgresql):
    postgresql.execute("DROP DATABASE IF EXISTS plain WITH (FORCE)")
    postgresql.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    with closing(open_store(read_location(postgresql.url("plain")))) as store:
        create_client(store, "me")
        assert [client.client_id for client in list_clients(store)] == ["me"]


def _schema(url):
    engine = create_engine(url)
    try:
        found = inspect(engine)
        return {
            table: (
                sorted(
                    (c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)
                ),
                sorted(map(str, found.get_indexes(table))),
                found.get_pk_constraint(table)["constrained_columns"],
                [key["constrained_columns"] for key in found.get_foreign_keys(table)],
            )
            for table in sorted(found.get_table_names())
        }
    finally:
        engine.dispose()


def test_migrations_make_what_a_new_database_has(postgresql):
    urls = []
    for name in ("created", "migrated"):
        postgresql.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        urls.append(postgresql.create_database(name).text)
    open_store(read_location(urls[0])).close()
    engine = create_engine(urls[1])
    with engine.begin() as connection:
        schema.upgrade(connection)
    engine.dispose()
    assert _schema(urls[1]) == _schema(urls[0])


def test_migrations_make_what_a_new_file_has(tmp_path):
    open_store(tmp_path / "created.db").close()
    engine = create_engine(f"sqlite:///{tmp_path}/migrated.db")
    with engine.begin() as connection:
        schema.upgrade(connection)
        connection.execute(text("SELECT version_num FROM dkimctl_version"))
    engine.dispose()
    assert _schema(f"sqlite:///{tmp_path}/migrated.db") == _schema(
        f"sqlite:///{tmp_path}/created.db"
    )
