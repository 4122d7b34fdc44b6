"""Killed at any moment, `login` and `logout` leave nothing that `logout` does not find."""

from __future__ import annotations

import itertools
import shutil
import sys
from pathlib import Path

import pytest

from commands import CommandServer
from keyrings import FILE_KEYRING
from processes import Cli, login_words

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

# Kills the process before its change number KILL_AT of a file, and has a keyring in a file.
KILLING = """
import os, signal, sys

CHANGES = {"os.rename", "os.remove", "os.chmod", "os.mkdir"}
home, steps = os.getcwd(), 0
sys.path.insert(0, home)

def count(event, arguments):
    global steps
    changes = event in CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))
    if changes and str(arguments[0]).startswith(home):
        steps += 1
        if steps == int(os.environ.get("KILL_AT", 0)):
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
"""


STORES = pytest.mark.parametrize(
    "store", ["file", pytest.param("keyring", marks=pytest.mark.nightly)]
)


class Machine:
    """Runs commands in copies of a home directory."""

    def __init__(self, server: CommandServer, home: Path) -> None:
        self._server = server
        self.home = home

    def __call__(self, *words: str, stdin: str = "", kill_at: int = 0):
        state = str(self.home / "state")
        environment = Cli(self.home).environment
        environment |= {"DKIMCTL_STATE_DIR": state, "AT_START": KILLING}
        environment |= {"PYTHON_KEYRING_BACKEND": "file_keyring.Keyring", "KILL_AT": str(kill_at)}
        return self._server.run(words, stdin.encode(), self.home, environment)

    def copy(self, name: str) -> Machine:
        home = self.home.with_name(name)
        shutil.copytree(self.home, home)
        return Machine(self._server, home)

    def log_in(
        self, store: str, account: dict[str, str], *, profile: str = "default", kill_at: int = 0
    ):
        words = [*login_words(account, store), "--profile", profile]
        return self(*words, stdin=account["DKIMCTL_CLIENT_SECRET"], kill_at=kill_at)

    def stored(self) -> str:
        """All that its files contain."""
        return "".join(path.read_text("latin-1") for path in self.home.rglob("*") if path.is_file())

    def leftovers(self) -> list[Path]:
        return [path for path in self.home.rglob(".*") if path.is_file()]


@pytest.fixture
def machine(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "file_keyring.py").write_text(FILE_KEYRING)
    server = CommandServer(Cli(tmp_path).environment)
    yield Machine(server, home)
    server.close()


def assert_a_logout_removes_all(machine: Machine, *accounts: dict[str, str]) -> None:
    done = machine("logout")
    assert done.status == 0, done.err
    stored = machine.stored()
    assert not any(account["DKIMCTL_CLIENT_SECRET"] in stored for account in accounts)
    assert "access_token" not in stored
    assert "(unused)" not in stored
    assert machine.leftovers() == []


def assert_the_next_login_works(machine, store, account, *replaced: dict[str, str]) -> None:
    assert machine.log_in(store, account).status == 0
    assert machine("token").status == 0
    stored = machine.stored()
    assert not any(other["DKIMCTL_CLIENT_SECRET"] in stored for other in replaced)
    assert stored.count(account["DKIMCTL_CLIENT_SECRET"]) == 1
    assert "(unused)" not in stored
    assert machine.leftovers() == []


def assert_it_is_logged_in_or_says_what_to_do(machine: Machine) -> None:
    status, token = machine("status"), machine("token")
    assert status.status == token.status == 0 or "run `dkimctl login`" in status.out
    assert token.status == 0 or "run `dkimctl login`" in token.err


@pytest.mark.parametrize(
    ("store", "former"),
    [
        ("file", None),
        pytest.param("file", "keyring", marks=pytest.mark.nightly),
        pytest.param("keyring", "file", marks=pytest.mark.nightly),
    ],
)
def test_a_killed_login_is_found_by_logout_and_repaired_by_login(
    machine, live_service, store, former
):
    account, other = live_service.create_client(), live_service.create_client()
    if former:
        assert machine.log_in(former, other).status == 0
    for step in itertools.count(1):
        killed = machine.copy(f"killed-{step}")
        status = killed.log_in(store, account, kill_at=step).status
        if status == 0:
            break
        assert status == -9
        assert_a_logout_removes_all(killed.copy(f"logout-{step}"), account, other)
        assert_the_next_login_works(killed.copy(f"login-{step}"), store, account, other)
        assert_it_is_logged_in_or_says_what_to_do(killed)
    assert step > 6


@STORES
def test_a_killed_deletion_of_a_profile_is_finished_by_the_next(machine, live_service, store):
    account, other = live_service.create_client(), live_service.create_client()
    assert machine.log_in(store, other).status == 0
    assert machine("profile", "use", "default").status == 0
    assert machine.log_in(store, account, profile="p").status == 0
    assert machine("profile", "use", "p").status == 0
    for step in itertools.count(1):
        killed = machine.copy(f"killed-{step}")
        status = killed("profile", "delete", "p", "--yes", kill_at=step).status
        if status == 0:
            break
        assert status == -9
        again = killed("profile", "delete", "p", "--yes")
        # After the last step nothing is left to delete.
        assert again.status == 0 or "unknown profile p" in again.err
        used = killed("status", "--format", "json").json
        assert (used["profile"], used["client_id"]) == ("default", other["DKIMCTL_CLIENT_ID"])
        stored = killed.stored()
        assert account["DKIMCTL_CLIENT_SECRET"] not in stored
        assert account["DKIMCTL_CLIENT_ID"] not in stored
        assert killed("token").status == 0
    assert step > 5


@STORES
def test_a_killed_logout_is_finished_by_the_next(machine, live_service, store):
    account = live_service.create_client()
    assert machine.log_in(store, account).status == 0
    for step in itertools.count(1):
        killed = machine.copy(f"killed-{step}")
        status = killed("logout", kill_at=step).status
        if status == 0:
            break
        assert status == -9
        assert_a_logout_removes_all(killed, account)
    assert step > 2
