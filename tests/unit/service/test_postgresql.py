"""What is of PostgreSQL alone; the rest of the service's tests run on both."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text

from dkimctl.errors import UsageError
from dkimctl.service import schema
from dkimctl.service.clients import create_client, list_clients
from dkimctl.service.database import open_store
from dkimctl.service.location import DatabaseUrl, read_location
from postgresql import PostgresServer, serving_postgresql

pytestmark = pytest.mark.slow


def _refusal(location: DatabaseUrl) -> UsageError:
    with pytest.raises(UsageError) as caught:
        open_store(location)
    assert caught.value.hint
    return caught.value


@pytest.fixture
def new_database(postgresql: PostgresServer) -> DatabaseUrl:
    postgresql.execute("DROP DATABASE IF EXISTS fresh WITH (FORCE)")
    return postgresql.create_database("fresh")


def test_what_is_stored_is_there_after_reopening(postgresql_database: DatabaseUrl) -> None:
    for name in ("first", "second"):
        with closing(open_store(postgresql_database)) as store:
            create_client(store, name)
    with closing(open_store(postgresql_database)) as store:
        assert [client.client_id for client in list_clients(store)] == ["first", "second"]


def test_tables_of_another_program_are_refused(
    postgresql: PostgresServer, new_database: DatabaseUrl
) -> None:
    postgresql.execute("CREATE TABLE clients (x integer)", "fresh")
    assert "another program: clients" in _refusal(new_database).message


def test_a_newer_version_is_refused(postgresql: PostgresServer, new_database: DatabaseUrl) -> None:
    open_store(new_database).close()
    postgresql.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'", "fresh")
    assert "newer dkimctl" in _refusal(new_database).message


def test_two_processes_that_open_a_new_database_at_once_both_succeed(
    new_database: DatabaseUrl,
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        for store in pool.map(open_store, [new_database] * 4):
            store.close()


def test_a_server_that_is_down_is_an_error_without_the_password(
    postgresql: PostgresServer,
) -> None:
    url = postgresql.url().replace(f":{postgresql.port}", ":1").replace("@", ":hush@")
    location = read_location(url)
    assert isinstance(location, DatabaseUrl)
    refusal = _refusal(location)
    assert "127.0.0.1:1" in refusal.message
    assert "hush" not in f"{refusal.message} {refusal!r} {refusal.__cause__!r} {location!r}"


def test_the_encoding_of_the_database_does_not_matter(postgresql: PostgresServer) -> None:
    postgresql.execute("DROP DATABASE IF EXISTS plain WITH (FORCE)")
    postgresql.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    with closing(open_store(read_location(postgresql.url("plain")))) as store:
        create_client(store, "me")
        assert [client.client_id for client in list_clients(store)] == ["me"]


def test_a_restart_of_the_server_is_survived(needs_tool) -> None:
    with serving_postgresql(needs_tool) as server:
        location = server.create_database("service")
        with closing(open_store(location)) as store:
            create_client(store, "before")
            server.stop()
            with pytest.raises(UsageError):
                create_client(store, "meanwhile")
            server.start()
            create_client(store, "after")
            assert [client.client_id for client in list_clients(store)] == ["after", "before"]


def _schema(url: str) -> dict[str, object]:
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


def test_migrations_make_what_a_new_database_has(postgresql: PostgresServer) -> None:
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


def test_migrations_make_what_a_new_file_has(tmp_path: Path) -> None:
    open_store(tmp_path / "created.db").close()
    engine = create_engine(f"sqlite:///{tmp_path}/migrated.db")
    with engine.begin() as connection:
        schema.upgrade(connection)
        connection.execute(text("SELECT version_num FROM dkimctl_version"))
    engine.dispose()
    assert _schema(f"sqlite:///{tmp_path}/migrated.db") == _schema(
        f"sqlite:///{tmp_path}/created.db"
    )
