"""`dkimctl service`: new secrets of clients, and what the system's log has of changes."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dkimctl.cli.main import run
from dkimctl.service.clients import authenticate
from dkimctl.service.database import open_store

DATA = ("--data", "service.db")


@pytest.fixture
def secret(cli) -> str:
    """That of the client `me`."""
    return json.loads(cli("service", "client", "create", "me", *DATA).out)["client_secret"]


def _is_valid(cli, secret: str) -> bool:
    with closing(open_store(cli.home / "service.db")) as store:
        return authenticate(store, "me", secret)


def test_a_new_secret_is_printed_as_that_of_a_new_client(cli, secret) -> None:
    done = cli("service", "client", "rotate-secret", "me", *DATA)
    printed = json.loads(done.out)
    assert set(printed) == {"client_id", "client_secret"}
    assert printed["client_secret"] != secret
    assert "the previous secret is valid for 24 h 0 min more" in done.err
    assert "--client-id me" in done.err
    assert _is_valid(cli, secret)
    assert _is_valid(cli, printed["client_secret"])


def test_an_overlap_of_zero_ends_the_old_secret(cli, secret) -> None:
    done = cli("service", "client", "rotate-secret", "me", "--overlap", "0s", *DATA)
    assert "the previous secret is no longer valid" in done.err
    assert not _is_valid(cli, secret)
    assert _is_valid(cli, json.loads(done.out)["client_secret"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_secret_that_could_not_be_printed_is_not_valid(cli, secret) -> None:
    with Path("/dev/full").open("w") as full:
        words = ("service", "client", "rotate-secret", "me", "--overlap", "0s", *DATA)
        assert cli.start(*words, stdout=full).wait(30) == 4
    assert _is_valid(cli, secret)


@pytest.mark.parametrize("output", ["mine.txt", "no/secret.txt"])
def test_a_secret_that_could_not_be_written_is_not_valid(cli, secret, output) -> None:
    cli.write("mine.txt", "mine")
    words = ("--overlap", "0s", "--output", output)
    done = cli("service", "client", "rotate-secret", "me", *DATA, *words)
    assert (done.status, done.out) == ((2, "") if output == "mine.txt" else (4, ""))
    assert output != "no/secret.txt" or "the client's secret is as before" in done.err
    assert (cli.home / "mine.txt").read_text() == "mine"
    assert _is_valid(cli, secret)


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
    for words in ("create acme", "disable acme", "list", "rotate-secret acme", "delete acme"):
        assert run(["service", "client", *words.split(), *data]) == 0
    assert run(["service", "client", "enable", "acme", *data]) == 1
    changes = ("create", "disable", "rotate-secret", "delete")
    assert lines == [
        f"operator uid={os.geteuid()} action='client {change}' subject='acme'" for change in changes
    ]
