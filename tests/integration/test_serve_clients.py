"""`dkimctl service`: its data file, the secrets of clients, and what the system's log has."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dkimctl.cli.commands.service import _hand_over
from dkimctl.cli.main import run
from dkimctl.errors import UsageError
from dkimctl.service.clients import ClientCredentials, authenticate
from dkimctl.service.database import open_store

DATA = ("--data", "service.db")


def _plant(cli, client_id: str, state: str) -> None:
    with closing(sqlite3.connect(cli.home / "service.db")) as connection, connection:
        row = (client_id, b"", state, "2026\x1b[2J", None, None)
        connection.execute("INSERT INTO clients VALUES (?, ?, ?, ?, ?, ?)", row)


def test_control_characters_do_not_reach_the_terminal(cli):
    cli("service", "client", "create", "good", *DATA)
    _plant(cli, "evil\x1b]0;x\x07\n\tx", "active")
    done = cli("service", "client", "list", *DATA)
    assert done.status == 0
    evil, good = done.out.splitlines()
    assert evil == "evil\\x1b]0;x\\x07\\x0a\\x09x\tactive\t2026\\x1b[2J"
    assert good.startswith("good\tactive\t")


def test_an_unknown_state_is_a_usage_error(cli):
    cli("service", "client", "create", "good", *DATA)
    _plant(cli, "odd\x1b", "bogus\x1b")
    done = cli("service", "client", "list", *DATA)
    assert (done.status, done.out) == (2, "")
    assert "invalid client 'odd\\x1b'" in done.err


def _tree(cli) -> set[str]:
    return {str(path.relative_to(cli.home)) for path in cli.home.rglob("*")}


@pytest.mark.parametrize(
    "words",
    [
        ("client", "list"),
        ("client", "disable", "someone"),
        ("client", "enable", "someone"),
        ("client", "delete", "someone"),
        ("client", "rotate-secret", "someone"),
        ("delivery", "add", "someone"),
        ("registration", "list"),
        ("registration", "delete", "example.com", "s1", "--yes"),
        ("export", "--format", "rspamd", "--output-dir", "export"),
    ],
)
@pytest.mark.parametrize("data", [(), ("--data", "typo.db"), ("--data", "no/such/typo.db")])
def test_a_missing_data_file_is_not_created(cli, words, data):
    before = _tree(cli)
    done = cli("service", *words, *data)
    assert (done.status, done.out) == (2, "")
    assert f"{data[1] if data else 'service.db'}: the service has no such data file\n" in done.err
    option = " --data " + data[1] if data else ""
    assert f"create it with `dkimctl service client create{option}`" in done.err
    assert _tree(cli) == before


@pytest.mark.parametrize("words", [("client", "list"), ("client", "create")])
@pytest.mark.parametrize("name", ["{}/service.db", "{}"])
def test_a_data_file_that_cannot_be_looked_at_is_not_said_to_be_missing(cli, words, name):
    done = cli("service", *words, "--data", name.format("x" * 300))
    assert (done.status, done.out) == (2, "")
    assert "File name too long" in done.err


@pytest.mark.parametrize("words", [("serve", "--port", 0), ("service", "client", "create")])
def test_a_directory_that_was_named_is_not_created(cli, words):
    before = _tree(cli)
    done = cli(*words, "--data", "typo/service.db")
    assert (done.status, done.out) == (2, "")
    assert "typo/service.db: the directory typo does not exist" in done.err
    assert _tree(cli) == before


@pytest.mark.parametrize(
    "words",
    [
        ("status",), ("show-dns",), ("check-dns",), ("rotate",), ("rotate", "--retired"),
        ("register", "--dry-run", "-"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", [(), ("--sandbox",)])
def test_commands_that_only_read_create_nothing(cli, words, profile):
    before = _tree(cli)
    cli(*words, *profile, stdin="- example.com\n")
    assert cli("token").status == 2, "there is no account"
    assert _tree(cli) == before


def test_the_secret_of_a_new_client_goes_to_a_file(cli, live_service, login):
    words = ("--data", str(live_service.cli.home / "service.db"))
    cli.at_start("import os\nos.umask(0)\n")
    cli.environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    done = cli("service", "client", "create", *words, "--output", "secret.txt")
    assert done.status == 0
    secret = (cli.home / "secret.txt").read_text()
    assert re.fullmatch(r"\S{48}\n", secret)
    assert secret.strip() not in done.out + done.err
    if sys.platform != "win32":
        assert stat.S_IMODE((cli.home / "secret.txt").stat().st_mode) == 0o600
    client_id = done.out.strip()
    [line] = re.findall("`(dkimctl login .* < secret.txt)`$", done.err, re.MULTILINE)
    assert f"--client-id {client_id} " in line
    assert "--credential-store file" in line
    url = live_service.url
    logged_in = cli(
        "login", "--auth-url", url, "--base-url", url, "--client-id", client_id,
        "--credential-store", "file", "--secret-stdin", stdin=secret,
    )  # fmt: skip
    assert logged_in.status == 0, logged_in.err


def test_a_dash_prints_the_secret(cli):
    for words in ((), ("--output", "-")):
        done = cli("service", "client", "create", *DATA, *words)
        assert set(json.loads(done.out)) == {"client_id", "client_secret"}
        client_id = json.loads(done.out)["client_id"]
        url = "http://127.0.0.1:8025"
        assert f"login --auth-url {url} --base-url {url} --client-id {client_id}" in done.err


@pytest.fixture
def secret(cli):
    """That of the client `me`."""
    return json.loads(cli("service", "client", "create", "me", *DATA).out)["client_secret"]


def _is_valid(cli, secret: str):
    with closing(open_store(cli.home / "service.db")) as store:
        return authenticate(store, "me", secret)


@pytest.fixture(params=["create other", "rotate-secret me --overlap 0s"])
def unchanged(request, cli, secret):
    """Run what makes a secret, which cannot be stored: neither a client nor a secret is new."""

    def run(*words, **streams):
        command = ("service", "client", *request.param.split(), *DATA, *words)
        done = cli.start(*command, **streams).wait(30) if streams else cli(*command)
        assert cli("service", "client", "list", *DATA).out.startswith("me\tactive\t")
        assert "other" not in cli("service", "client", "list", *DATA).out
        assert _is_valid(cli, secret)
        return done

    return run


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_a_secret_replaces_no_file(cli, unchanged, kind):
    cli.write("mine.txt", "mine")
    name = "mine.txt" if kind == "file" else "link.txt"
    if kind != "file":
        (cli.home / name).symlink_to("mine.txt" if kind == "link" else "nothing.txt")
    done = unchanged("--output", name)
    assert (done.status, done.out) == (2, "")
    assert f"{name} exists, and is not overwritten" in done.err
    assert (cli.home / "mine.txt").read_text() == "mine"
    assert not (cli.home / "nothing.txt").exists()


def test_a_secret_that_could_not_be_written_or_printed_is_not_valid(unchanged):
    done = unchanged("--output", "no/secret.txt")
    assert (done.status, done.out) == (2, "")
    assert "cannot write no/secret.txt" in done.err
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            assert unchanged(stdout=full) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes and a shell")
def test_a_secret_goes_neither_where_others_could_replace_it_nor_to_a_closed_stdout(cli, unchanged):
    (cli.home / "shared").mkdir()
    (cli.home / "shared").chmod(0o777)
    done = unchanged("--output", "shared/secret.txt")
    assert (done.status, done.out) == (2, "")
    assert "shared: other users can write to it" in done.err
    assert not any((cli.home / "shared").iterdir())
    command = shlex.join(cli.command("service", "client", "create", "new", *DATA))
    closed = subprocess.run(["sh", "-c", f"{command} >&-"], env=cli.environment, cwd=cli.home,
                            capture_output=True, check=False)  # fmt: skip
    assert (closed.returncode, b"stdout is closed" in closed.stderr) == (4, True)
    assert "new" not in cli("service", "client", "list", *DATA).out


def test_a_secret_that_does_not_take_effect_is_left_nowhere(tmp_path):
    @contextmanager
    def change():
        yield ClientCredentials("me", "hush")
        raise UsageError("the disk is full")

    with pytest.raises(UsageError, match="the disk is full"):
        _hand_over(change(), tmp_path / "secret.txt", "done", "undone")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("client_id", ["taken", "a:b"])
def test_no_secret_is_left_of_a_client_that_was_not_created(cli, client_id):
    assert cli("service", "client", "create", "taken", *DATA).status == 0
    done = cli("service", "client", "create", client_id, *DATA, "--output", "secret.txt")
    assert (done.status, done.out) == (2, "")
    assert not (cli.home / "secret.txt").exists()


def test_a_new_secret_is_printed_as_that_of_a_new_client(cli, secret) -> None:
    done = cli("service", "client", "rotate-secret", "me", *DATA)
    printed = json.loads(done.out)
    assert set(printed) == {"client_id", "client_secret"}
    assert printed["client_secret"] != secret
    assert "the previous secret is valid for 1 d more" in done.err
    assert "--client-id me" in done.err
    assert _is_valid(cli, secret)
    assert _is_valid(cli, printed["client_secret"])


def test_an_overlap_of_zero_ends_the_old_secret(cli, secret) -> None:
    done = cli("service", "client", "rotate-secret", "me", "--overlap", "0s", *DATA)
    assert "the previous secret is no longer valid" in done.err
    assert not _is_valid(cli, secret)
    assert _is_valid(cli, json.loads(done.out)["client_secret"])


def test_no_secret_is_left_of_a_client_that_is_not_there(cli, secret) -> None:
    words = ("--output", "secret.txt")
    done = cli("service", "client", "rotate-secret", "nobody", *DATA, *words)
    assert (done.status, done.out) == (1, "")
    assert "the client does not exist" in done.err
    assert not (cli.home / "secret.txt").exists()


@pytest.mark.parametrize("overlap", ["-1s", "soon", "", "11y"])
def test_an_overlap_that_is_no_duration_is_refused(cli, secret, overlap) -> None:
    done = cli("service", "client", "rotate-secret", "me", f"--overlap={overlap}", *DATA)
    assert (done.status, done.out) == (2, "")
    assert "in --overlap: invalid duration" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no syslog")
def test_what_an_operator_changes_is_in_the_systems_log(tmp_path, monkeypatch) -> None:
    import syslog

    lines: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lines.append)
    data = ["--data", str(tmp_path / "service.db")]
    for words in ("create acme", "disable acme", "list", "rotate-secret acme", "delete acme -y"):
        assert run(["service", "client", *words.split(), *data]) == 0
    assert run(["service", "client", "enable", "acme", *data]) == 1
    changes = ("create", "disable", "rotate-secret", "delete")
    assert lines == [
        f"operator uid={os.geteuid()} action='client {change}' subject='acme'" for change in changes
    ]
