"""The commands of docs/service.md, with a real PostgreSQL."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import closing

import pytest
from sqlalchemy import select

from dkimctl.service.clients import add_delivery, authenticate, cancel_delivery, create_client
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import Passphrase, make_key
from dkimctl.service.registrations import StoredRegistration, add_all, find_all
from dkimctl.service.schema import registrations
from documents import example

if sys.platform == "win32":
    pytest.skip("the page is for Debian and Ubuntu", allow_module_level=True)


@pytest.fixture
def environment(postgresql_database) -> dict[str, str]:
    return {
        "DKIMCTL_SERVICE_DATABASE": postgresql_database.text,
        "DKIMCTL_SERVICE_PASSPHRASE": "a passphrase for 'tests'",
    }


def test_the_database_of_the_page(cli, shell, postgresql, needs_tool):
    needs_tool("createuser")
    block = example("createuser").replace("sudo -u postgres ", "")
    server = {"PGHOST": "127.0.0.1", "PGPORT": str(postgresql.port), "PGUSER": "dkimctl"}
    try:
        shell(block, server, input="secret\nsecret\n", start_new_session=True)  # has no terminal
        url = f"postgresql+psycopg://dkimctl-serve:secret@127.0.0.1:{postgresql.port}/dkimctl"
        done = cli("service", "client", "create", env={"DKIMCTL_SERVICE_DATABASE": url})
        assert done.status == 0, done.err
    finally:
        postgresql.execute("DROP DATABASE IF EXISTS dkimctl WITH (FORCE)")
        postgresql.execute('DROP ROLE IF EXISTS "dkimctl-serve"')


def test_the_script_of_the_page(cli, environment):
    """The user that the page adds is not there."""
    script = example("/opt/dkimctl/bin/dkimctl service").replace(
        "/opt/dkimctl/bin/dkimctl", shlex.join([sys.executable, "-m", "dkimctl"])
    )
    as_user = "/usr/sbin/runuser -u dkimctl-serve -- "
    assert as_user in script
    script = script.replace(as_user, "").replace("/var/lib/dkimctl-serve", str(cli.home))
    script = script.replace("/etc/dkimctl/", f"{cli.home}/")
    lines = (f"{name}={shlex.quote(value)}\n" for name, value in environment.items())
    cli.write("service.env", "".join(lines))
    words = ["sh", "-s", "--", "client", "create", "acme", "--output", "acme.txt"]
    done = subprocess.run(words, input=script, env=cli.environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "acme\n"), done.stderr
    assert (cli.home / "acme.txt").is_file()
    assert "acme\t" in cli("service", "client", "list", env=environment).out


def test_a_database_is_dumped_and_restored(cli, shell, postgresql, needs_tool):
    needs_tool("pg_dump")
    server = {"PGHOST": "127.0.0.1", "PGPORT": str(postgresql.port), "PGUSER": "dkimctl"}
    location = {"DKIMCTL_SERVICE_DATABASE": postgresql.url("dkimctl")}
    try:
        postgresql.execute("CREATE DATABASE dkimctl")
        assert cli("service", "client", "create", "acme", env=location).status == 0
        shell(example("pg_dump").replace("sudo -u postgres ", ""), server)
        assert (cli.home / "backup.dump").stat().st_mode & 0o777 == 0o600
        postgresql.execute("DROP DATABASE dkimctl WITH (FORCE)")
        postgresql.execute("CREATE DATABASE dkimctl")
        shell(example("pg_restore").replace("sudo -u postgres ", ""), server)
        assert "acme\t" in cli("service", "client", "list", env=location).out
    finally:
        postgresql.execute("DROP DATABASE IF EXISTS dkimctl WITH (FORCE)")


def test_a_file_moves_to_postgresql(cli, shell, postgresql_database, needs_tool):
    needs_tool("psql")
    with closing(open_store(cli.home / "service.db", Passphrase(b"ours"))) as store:
        created = create_client(store, "acme")
        add_delivery(store, "acme", "delivery-1")
        pair = make_key(1024)
        moved = StoredRegistration("acme", "a.example", "s1", 1024, "2026-11-21T12:00+00:00", 0,
                                   True, pair.value, "2026-11-21T12:00:00+00:00")  # fmt: skip
        assert add_all(store, {moved: pair.private_key})
    url = postgresql_database.text.replace("+psycopg", "")
    shell(example("move passphrases"), {"DATABASE": url})
    with closing(open_store(postgresql_database, Passphrase(b"ours"))) as store:
        assert authenticate(store, "acme", created.secret)
        assert cancel_delivery(store, "acme", "delivery-1")
        assert find_all(store, [moved.name]) == {moved.name: moved}
        with store.reading() as connection:
            stored = connection.execute(select(registrations.c.private_key)).scalar_one()
        assert store.unseal(stored) == pair.private_key
