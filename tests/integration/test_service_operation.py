"""The commands of docs/service-operation.md, with a real PostgreSQL."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

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


def test_a_backup_is_made_and_restored(cli, shell, environment):
    assert cli("service", "client", "create", "acme", env=environment).status == 0
    done = shell(example("service audit --since"), environment)
    assert "client create\tacme" in done.stdout
    restored = cli("service", "client", "list", "--data", "restored.db", env=environment)
    assert "acme\t" in restored.out


def test_a_file_moves_to_postgresql(cli, shell, postgresql_database):
    url = postgresql_database.text
    assert cli("service", "client", "create", "acme", "--data", "service.db").status == 0
    shell(example("restore move.db"), {"DATABASE_URL": url})
    assert "acme\t" in cli("service", "client", "list", "--database", url).out
