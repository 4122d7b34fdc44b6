"""The lock of an account: one process holds it, the others wait and learn which one."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import subprocess
import sys
from datetime import datetime, timedelta

import filelock
import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.account_lock import UNKNOWN, account_lock

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")

# Holds the lock until its standard input ends.
_PROGRAM = """
import sys
from pathlib import Path
from dkimctl.ledger.account_lock import account_lock

directory, base_url, client_id = sys.argv[1:]
with account_lock(Path(directory), base_url=base_url, client_id=client_id, on_wait=print):
    print("holds", flush=True)
    sys.stdin.read()
"""


class WouldWait(Exception):
    """Raised instead of waiting."""


def refuse_to_wait(holder):
    raise WouldWait(holder)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def lock(directory):
    """Take the lock of an account, without waiting."""
    return lambda **options: account_lock(
        directory, **ACCOUNT | {"on_wait": refuse_to_wait} | options
    )


@pytest.fixture
def holder(directory):
    """A process that holds the lock of the account."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, directory, *ACCOUNT.values()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "holds\n"
        yield process
        process.kill()


@pytest.fixture
def locked_without_holder(directory, lock):
    """Hold the lock with some content in the holder file, as left by an earlier process."""

    @contextlib.contextmanager
    def locked(content=None):
        with lock():
            pass
        [holder_file] = directory.glob("*.holder")
        holder_file.unlink()
        if content is not None:
            holder_file.write_bytes(content)
        with filelock.FileLock(holder_file.with_suffix(".lock")):
            yield holder_file

    return locked


def refused(context, error) -> Exception:
    with pytest.raises(error) as caught, context:
        pytest.fail("the lock was acquired")
    return caught.value


def reported_holder(lock) -> str:
    return refused(lock(), WouldWait).args[0]


def assert_unusable(lock, *words) -> None:
    error = refused(lock(), LedgerError)
    assert all(str(word) in error.message for word in words)
    assert error.hint


def test_the_second_waits_and_learns_which_process_holds_the_lock(lock, holder):
    error = refused(lock(on_wait=lambda _: None, patience=0.2), LedgerError)
    assert re.match(f"waited 1 s .*process {holder.pid}, since ", error.message)
    assert error.hint == "end that process if it hangs, then run the same command again"
    holders = []

    def on_wait(waited_for):
        holders.append(waited_for)
        holder.stdin.close()

    with lock(on_wait=on_wait):
        assert holder.wait(10) == 0
    [waited_for] = holders
    since = waited_for.removeprefix(f"process {holder.pid}, since ")
    age = datetime.now().astimezone() - datetime.fromisoformat(since)
    assert timedelta(0) <= age < timedelta(minutes=1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", since)


def test_a_killed_holder_leaves_no_lock_and_is_not_named(
    directory, lock, holder, locked_without_holder
):
    """Nor is this process: those in two containers that share a volume may have the same ID."""
    [holder_file] = directory.glob("*.holder")
    content = holder_file.read_bytes()
    holder.kill()
    holder.wait(10)
    with lock():
        assert str(holder.pid).encode() in content
    own = f"{os.getpid()} 2026-11-21T10:15:30+09:00\n".encode()
    for text in (own, content):
        with locked_without_holder(text):
            assert reported_holder(lock) == UNKNOWN


@pytest.mark.parametrize(
    "content",
    [None, b"\x1b[31m\xff\x00", b"1 2026-11-21T10:15:30+09:00", b"1 " * 1_000_000,
     b"9999999999 2026-11-21T10:15:30+09:00\n", b"1 2026-11-21T10:15:30+09:00\x1b]0;owned\x07\n"],
    ids=range(6),
)  # fmt: skip
def test_an_invalid_holder_file_names_no_process(lock, locked_without_holder, content):
    with locked_without_holder(content):
        assert reported_holder(lock) == UNKNOWN


@posix_only
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_holder_file_that_is_not_a_regular_file_is_neither_read_nor_written(
    lock, locked_without_holder, tmp_path, kind
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(valid := f"{os.getppid()} 2026-11-21T10:15:30+09:00\n")
    with locked_without_holder() as holder_file:
        if kind == "fifo":
            os.mkfifo(holder_file)
        else:
            holder_file.symlink_to(elsewhere)
        assert_unusable(lock, f"{holder_file}: it is ")
    assert_unusable(lock, f"{holder_file}: it is ")
    assert elsewhere.read_text() == valid


@pytest.mark.parametrize(
    "other",
    [{"client_id": "you"}, {"base_url": "https://other.example"}, {"client_id": "me\udcff"},
     {"base_url": "https://api.exampleme", "client_id": ""}, {"purpose": "rotate"}],
)  # fmt: skip
def test_two_accounts_or_purposes_do_not_wait_for_each_other(directory, lock, other):
    with lock(), lock(**other):
        assert len(list(directory.glob("*.holder"))) == 2
        refused(lock(**other), WouldWait)


@posix_only
def test_the_files_are_private_and_do_not_name_the_account(directory, lock):
    with lock():
        files = list(directory.iterdir())
        assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 2
        content = b"".join(os.fsencode(file.name) + file.read_bytes() for file in files)
        assert b"example" not in content


@posix_only
def test_a_file_system_without_locks_is_reported(directory, lock, monkeypatch):
    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    assert_unusable(lock, directory, os.strerror(errno.ENOLCK))
