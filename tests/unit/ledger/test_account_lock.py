"""Who may register for an account, who waits, and what those who wait are told."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from datetime import datetime, timedelta
from pathlib import Path

import filelock
import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.account_lock import Holder, account_lock

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
UNNAMED = Holder(None, "")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such thing")

# Holds the lock until its standard input ends.
_PROGRAM = """
import sys
from pathlib import Path
from dkimctl.ledger.account_lock import account_lock

def on_wait(holder):
    print("waits for", holder.pid, flush=True)

directory, base_url, client_id = sys.argv[1:]
with account_lock(Path(directory), base_url=base_url, client_id=client_id, on_wait=on_wait):
    print("holds", flush=True)
    sys.stdin.read()
"""


class Left(Exception):
    """Raised instead of waiting."""


def refuse_to_wait(holder):
    raise Left(holder)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def start(directory):
    """Start processes that want the lock of an account; they end with the test."""
    with contextlib.ExitStack() as stack:

        def start_one(account=ACCOUNT):
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, directory, *account.values()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start_one


@pytest.fixture
def holder(start):
    process = start()
    assert process.stdout.readline() == "holds\n"
    return process


@contextlib.contextmanager
def held_without_a_note(directory, content=None):
    """As by a process that has just got the lock; a note of an earlier one may be there."""
    with account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
        pass
    [note] = directory.glob("*.holder")
    note.unlink()
    if content is not None:
        note.write_bytes(content)
    with filelock.FileLock(note.with_suffix(".lock")):
        yield note


def whom_one_would_wait_for(directory):
    with pytest.raises(Left) as left, account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
        pass
    return left.value.args[0]


def test_the_second_waits_for_the_first_and_is_told_who_that_is(directory, holder):
    told = []

    def on_wait(found):
        told.append(found)
        holder.stdin.close()

    with account_lock(directory, **ACCOUNT, on_wait=on_wait):
        assert holder.wait(10) == 0
    [(pid, since)] = told
    assert pid == holder.pid
    started = datetime.fromisoformat(since)
    assert timedelta(0) <= datetime.now().astimezone() - started < timedelta(minutes=1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", since)


def test_of_many_each_has_its_turn(start):
    processes = [start() for _ in range(4)]
    for process in processes:
        process.stdin.close()
    for process in processes:
        assert process.stdout.read().endswith("holds\n")
        assert process.wait(10) == 0


@posix_only
def test_ctrl_c_ends_the_waiting(start, holder):
    waiter = start()
    assert waiter.stdout.readline() == f"waits for {holder.pid}\n"
    waiter.send_signal(signal.SIGINT)
    assert waiter.wait(10) != 0
    assert "KeyboardInterrupt" in waiter.stderr.read()
    assert waiter.stdout.read() == "", "it never had the lock"


def test_a_killed_holder_leaves_no_lock(directory, holder):
    holder.kill()
    holder.wait(10)
    with account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
        assert list(directory.glob("*.holder"))


def test_nobody_waits_for_itself(directory):
    """Two containers that share a volume may give the same number to their processes."""
    with held_without_a_note(directory, f"{os.getpid()} 2026-11-21T10:15:30+09:00\n".encode()):
        assert whom_one_would_wait_for(directory) == UNNAMED


def test_the_note_of_a_killed_holder_is_not_taken_for_the_next(directory, holder):
    holder.kill()
    holder.wait(10)
    [note] = directory.glob("*.holder")
    left_behind = note.read_bytes()
    assert str(holder.pid).encode() in left_behind
    with held_without_a_note(directory, left_behind):
        assert whom_one_would_wait_for(directory) == UNNAMED


def test_a_note_that_comes_a_moment_later_is_believed(directory):
    text = f"{os.getppid()} 2026-11-21T10:15:30+09:00\n".encode()
    with held_without_a_note(directory, b"") as note:
        writer = threading.Timer(0.05, note.write_bytes, [text])
        writer.start()
        assert whom_one_would_wait_for(directory) == (os.getppid(), "2026-11-21T10:15:30+09:00")
        writer.join()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="none"),
        b"",
        b"\x1b[31m\xff\x00",
        b"1 2026-11-21T10:15:30+09:00",
        b"0 2026-11-21T10:15:30+09:00\n",
        b"-1 2026-11-21T10:15:30+09:00\n",
        b"9999999999 2026-11-21T10:15:30+09:00\n",
        b"1 2026-11-21T10:15:30+09:00\x1b]0;owned\x07\n",
        b"1 2026-11-21T10:15:30+09:00\n\n",
        pytest.param(b"1 " * 1_000_000, id="long"),
    ],
)
def test_a_note_that_is_none_names_nobody(directory, content):
    with held_without_a_note(directory, content):
        assert whom_one_would_wait_for(directory) == UNNAMED


@posix_only
@pytest.mark.parametrize("kind", ["fifo", "directory", "link"])
def test_what_is_no_file_names_nobody_and_is_not_written_to(directory, tmp_path, kind):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(valid := f"{os.getppid()} 2026-11-21T10:15:30+09:00\n")
    with held_without_a_note(directory) as note:
        match kind:
            case "fifo":
                os.mkfifo(note)
            case "directory":
                note.mkdir()
            case "link":
                note.symlink_to(elsewhere)
        assert whom_one_would_wait_for(directory) == UNNAMED
    assert_no_lock(directory, note)
    assert elsewhere.read_text() == valid


@pytest.mark.parametrize(
    "other",
    [
        {**ACCOUNT, "client_id": "you"},
        {**ACCOUNT, "base_url": "https://other.example"},
        {"base_url": "https://api.exampleme", "client_id": ""},
        {"base_url": "https://api.example", "client_id": "me\udcff"},
    ],
)
def test_two_accounts_do_not_wait_for_each_other(directory, other):
    with (
        account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait),
        account_lock(directory, **other, on_wait=refuse_to_wait),
    ):
        assert len(list(directory.glob("*.holder"))) == 2


def test_it_can_be_had_again_and_again(directory):
    for _ in range(3):
        with account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
            pass
    assert [note.read_bytes() for note in directory.glob("*.holder")] == [b""]


@posix_only
def test_nobody_else_can_read_it_and_it_says_nothing_of_the_account(directory):
    with account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
        files = list(directory.iterdir())
        assert len(files) == 2
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        told = b"".join(os.fsencode(file.name) + file.read_bytes() for file in files)
        assert b"example" not in told


def test_an_error_of_what_is_done_meanwhile_stays_as_it_is(directory):
    error = FileNotFoundError("domains.yaml")
    with (
        pytest.raises(FileNotFoundError) as caught,
        account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait),
    ):
        raise error
    assert caught.value is error
    with account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
        assert True, "the lock was given back"


def assert_no_lock(directory, *named):
    with (
        pytest.raises(LedgerError) as caught,
        account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait),
    ):
        pytest.fail("there can be no lock")
    for path in named:
        assert str(path) in caught.value.message
    assert "DKIMCTL_STATE_DIR" in caught.value.hint


def test_a_file_in_the_place_of_the_directory_is_told(directory):
    directory.write_bytes(b"")
    assert_no_lock(directory, directory)


@contextlib.contextmanager
def as_a_user_whom_modes_bind():
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@posix_only
def test_a_read_only_directory_is_told(tmp_path):
    with account_lock(tmp_path, **ACCOUNT, on_wait=refuse_to_wait):
        pass  # so that all modules are imported before the user changes
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        with as_a_user_whom_modes_bind():
            assert_no_lock(Path(name), name)


@posix_only
def test_a_full_disk_is_told_and_gives_the_lock_back(directory):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # no file may grow
    try:
        assert_no_lock(directory, directory)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with account_lock(directory, **ACCOUNT, on_wait=refuse_to_wait):
        assert [note.stat().st_size for note in directory.glob("*.holder")] != [0]


@posix_only
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told(directory, monkeypatch, code):
    def flock(descriptor, operation):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    assert_no_lock(directory, directory, os.strerror(code))
