"""Opening the file, and committing to it, whatever the disk, the user and other processes do."""

from __future__ import annotations

import errno
import itertools
import shutil
import sqlite3
import sys
import time
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from dkimctl.errors import LedgerError
from dkimctl.files import sqlite_uri
from dkimctl.ledger.opening import open_for_writing, require_disk_space, translate_errors
from dkimctl.models import DomainSpec

COUNT = """
try:
    with Ledger.open_existing(path, **ACCOUNT) as ledger:
        print(len(list(ledger.all())))
except LedgerError as error:
    print(error.message, error.hint, sep="\\n")
"""
# Writes more than fits into SQLite's cache, so that half of it is in the log; then waits.
HALF_WRITTEN = """
ledger = Ledger.open(path, **ACCOUNT)
ledger.record([answer(1)])
other = sqlite3.connect(path)
other.execute("PRAGMA cache_size = 1")
other.execute("BEGIN IMMEDIATE")
other.execute("DELETE FROM registration")
other.executemany("INSERT INTO account (base_url, client_id) VALUES (?, ?)",
                  [(str(number), "x" * 1000) for number in range(500)])
print("half-way", flush=True)
sys.stdin.read()
"""
COMMIT_AND_REOPEN = """
print("ready", flush=True)
for number in range(10_000):
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([answer(2 * number)])
        ledger.record([answer(2 * number + 1)])
"""


def killed(process, word):
    assert process.stdout.readline() == f"{word}\n"
    process.kill()
    process.wait()


def test_a_reader_creates_no_file(path, read):
    with read() as ledger:
        assert list(ledger.all()) == []
        assert ledger.quarantined is None
    assert not path.parent.exists()


def test_a_reader_neither_waits_for_a_writer_nor_sees_uncommitted_changes(
    write, read, path, make_registration
):
    with write() as ledger:
        ledger.record([make_registration()])
    writer = sqlite3.connect(path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM registration")
    started = time.monotonic()
    with read() as ledger:
        assert list(ledger.all()) == [make_registration()]
    assert time.monotonic() - started < 4  # to wait for it would take 5
    writer.close()


def test_a_writer_does_not_wait_for_a_reader(write, read, make_registration):
    answers = [make_registration(f"d{number}.example") for number in range(9)]
    with write() as ledger:
        ledger.record(answers[:-1])
        with read() as reader:
            reading = reader.all()
            assert next(reading) == answers[0]
            started = time.monotonic()
            ledger.record(answers[-1:])
            assert time.monotonic() - started < 4  # to wait for it would take 5
            assert list(reading) == answers[1:-1]
            assert list(reader.all()) == answers


def test_uncommitted_changes_of_a_killed_writer_are_not_read(start, read, path):
    killed(start(HALF_WRITTEN), "half-way")
    log = path.with_name("ledger.db-wal")
    contents = {file: file.read_bytes() for file in (path, log)}
    assert len(contents[log]) > 100_000
    with read() as ledger:
        assert [registration.sign_domain for registration in ledger.all()] == ["d1.example"]
    assert {file: file.read_bytes() for file in contents} == contents


@pytest.mark.slow
def test_readers_work_while_a_writer_commits_without_pause(start, read):
    writer = start(COMMIT_AND_REOPEN)
    assert writer.stdout.readline() == "ready\n"
    counts = []
    end = time.monotonic() + 1
    while time.monotonic() < end:
        with read() as ledger:
            counts.append(len(list(ledger.all())))
    assert writer.poll() is None
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_a_ledger_in_a_read_only_directory_can_be_read(elsewhere, write, make_registration):
    path = elsewhere.path / "ledger.db"
    with write(path=path) as ledger:
        ledger.record([make_registration()])
    path.chmod(0o644)
    elsewhere.path.chmod(0o555)
    assert elsewhere.run(COUNT, path) == "1\n"
    assert [file.name for file in elsewhere.path.iterdir()] == ["ledger.db"]


@pytest.mark.parametrize("with_index", [True, False])
def test_a_log_in_a_read_only_directory_is_read_or_reported(
    elsewhere, write, make_registration, with_index
):
    path, log = elsewhere.path / "ledger.db", elsewhere.path / "ledger.db-wal"
    with write(path=path) as ledger:
        ledger.record([make_registration()])
        contents = {file: file.read_bytes() for file in elsewhere.path.iterdir()}
    for file, content in contents.items():  # as a kill leaves them
        file.write_bytes(content)
        file.chmod(0o644)
    if not with_index:
        path.with_name("ledger.db-shm").unlink()
    elsewhere.path.chmod(0o555)
    output = elsewhere.run(COUNT, path)
    if with_index:
        assert output == "1\n"
    else:
        assert f"cannot read the ledger {path}" in output
        assert f"{log.name} holds changes to it" in output
        assert f"make {path.parent} writable" in output
    assert log.read_bytes() == contents[log]


# As on a file system that has no write-ahead log.
KILLED_IN_A_CHANGE = """
import signal
with Ledger.open(path, **ACCOUNT) as ledger:
    ledger.record([answer(number) for number in range(100)])
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA journal_mode = DELETE")
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE registration SET value = 'half'")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_reader_undoes_a_change_that_was_killed(path, start, read):
    start(KILLED_IN_A_CHANGE).wait()
    journal = path.with_name("ledger.db-journal")
    assert journal.stat().st_size > 0
    with read() as ledger:
        assert {one.record.value for one in ledger.all()} == {"v" * 415}
    assert not journal.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_change_that_was_killed_is_reported_where_it_cannot_be_undone(elsewhere, path, start):
    start(KILLED_IN_A_CHANGE).wait()
    for file in path.parent.glob("ledger.db*"):
        copy = elsewhere.path / file.name
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o644)
    elsewhere.path.chmod(0o555)
    output = elsewhere.run(COUNT, elsewhere.path / "ledger.db")
    assert "ledger.db-journal holds changes to it" in output
    assert f"make {elsewhere.path} writable" in output


def test_a_ledger_that_the_user_cannot_read_is_reported(elsewhere, write):
    path = elsewhere.path / "ledger.db"
    write(path=path).close()
    path.chmod(0)
    assert f"cannot use the ledger {path}: unable to open" in elsewhere.run(COUNT, path)
    path.chmod(0o644)
    elsewhere.path.chmod(0)
    assert f"cannot use the ledger {path}: Permission denied" in elsewhere.run(COUNT, path)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PureWindowsPath(r"C:\a b\ledger.db"), "file:///C:/a%20b/ledger.db"),
        (PureWindowsPath(r"\\server\share\ledger.db"), "file:////server/share/ledger.db"),
        (PurePosixPath("/a?b#c%d/ledger.db"), "file:///a%3Fb%23c%25d/ledger.db"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_path_becomes_a_uri_that_sqlite_reads(path, uri):
    assert sqlite_uri(path.as_uri()) == uri


TRY_TO_OPEN = """
try:
    Ledger.open(path, **ACCOUNT)
except LedgerError as error:
    print(error.message, error.hint, sep="\\n")
"""


def fill_up(ledger, make_registration):
    """Commit until the disk is full; returns what was stored, and the error."""
    stored = []
    for number in range(10_000):
        date = "2026-11-21T12:00:00+00:00"
        answer = make_registration(f"d{number:04}.example", regist_date=date)
        try:
            ledger.commit(answered=[answer], begun=[[DomainSpec(f"e{number:04}.example")]])
        except LedgerError as error:
            return stored, error
        stored.append(answer)
    raise AssertionError("the disk is never full")


def test_a_full_disk_loses_nothing_that_was_committed(
    small_disk, on_disk, write, read, make_registration
):
    small_disk.fill(leaving=300_000)
    with write(path=on_disk) as ledger:
        stored, error = fill_up(ledger, make_registration)
        assert f"not enough space for the ledger {on_disk}" in error.message
        assert f"free space at {on_disk.parent}" in error.hint
        assert len(stored) > 10
        assert list(ledger.all()) == stored
        assert [intent.sign_domain[1:] for intent in ledger.intents()] == [
            answer.sign_domain[1:] for answer in stored
        ]
        with read(path=on_disk) as reader:
            assert list(reader.all()) == stored
        small_disk.relieve()
        more = make_registration("more.example")
        ledger.record([more])
    with read(path=on_disk) as reader:
        assert list(reader.all()) == [*stored, more]


def test_a_closed_ledger_can_be_read_without_any_free_space(
    small_disk, on_disk, write, read, make_registration
):
    with write(path=on_disk) as ledger:
        ledger.record([make_registration()])
    small_disk.fill(leaving=0)
    with read(path=on_disk) as reader:
        assert list(reader.all()) == [make_registration()]
    with pytest.raises(LedgerError, match="not enough space for the ledger"):
        write(path=on_disk)
    small_disk.relieve()
    with write(path=on_disk) as ledger:
        assert list(ledger.all()) == [make_registration()]


@pytest.mark.parametrize("there", [True, False])
def test_a_read_only_directory_is_refused_for_writing(elsewhere, write, there):
    path = elsewhere.path / "ledger.db"
    if there:
        write(path=path).close()
        elsewhere.give(path)
    elsewhere.path.chmod(0o555)
    output = elsewhere.run(TRY_TO_OPEN, path)
    assert f"cannot use the ledger {path}: " in output
    assert f"check that you can read and write in the directory {path.parent}" in output


def test_a_read_only_file_is_refused_for_writing(elsewhere, write):
    path = elsewhere.path / "ledger.db"
    write(path=path).close()
    path.chmod(0o444)
    elsewhere.give(elsewhere.path)
    assert "attempt to write a readonly database" in elsewhere.run(TRY_TO_OPEN, path)


def test_a_lock_of_another_program_is_reported(write, path):
    with write():
        holder = sqlite3.connect(path)
        holder.execute("BEGIN IMMEDIATE")
        other = sqlite3.connect(path, timeout=0)
        with pytest.raises(LedgerError, match="locked by another program"), translate_errors(path):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        holder.close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "not enough space for the ledger"),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot use .*: Permission denied$"),
        (OSError(errno.EIO, "Input/output error"), "cannot use .*: Input/output error$"),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), "a closed database"),
        (OverflowError("too large"), "too large"),
    ],
)
def test_every_error_becomes_a_ledger_error_with_a_hint(path, error, message):
    with pytest.raises(LedgerError, match=message) as caught, translate_errors(path):
        raise error
    assert caught.value.hint
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("batch_size", [1, 7, 50, 400])
def test_answers_fit_into_the_space_required_for_them(
    small_disk, on_disk, write, make_registration, batch_size
):
    """In batches of any size, with their intents, in random order."""
    answers = [make_registration(f"{hash(str(n)):x}.example") for n in range(400)]
    with write(path=on_disk) as ledger:
        small_disk.fill(leaving=9_700_000)
        ledger.require_disk_space(len(answers))
        with pytest.raises(LedgerError):
            ledger.require_disk_space(len(answers) + 50)
        for first in range(0, len(answers), batch_size):
            batch = answers[first : first + batch_size]
            ledger.commit(begun=[[DomainSpec(*answer[:2]) for answer in batch]])
            ledger.commit(answered=batch, settled=[answer.key for answer in batch])
        assert len(list(ledger.all())) == 400


def test_no_disk_has_space_for_everything(write):
    with write() as ledger, pytest.raises(LedgerError, match="not enough space for the ledger"):
        ledger.require_disk_space(10**15)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_system_that_reports_no_size_is_assumed_to_have_space():
    path = Path("/proc/ledger.db")
    assert shutil.disk_usage(path.parent).free == 0
    assert require_disk_space(path, 1) == 1


COMMIT_FOR_EVER = """
start = int(sys.stdin.readline())
with Ledger.open(path, **ACCOUNT) as ledger:
    for number in range(start, 10**9):
        ledger.commit(begun=[[DomainSpec(f"d{number}.example", "s")]])
        print("begun", number, flush=True)
        ledger.commit(answered=[answer(number)], settled=[key_of(f"d{number}.example", "s")])
        print("answered", number, flush=True)
"""


def test_a_kill_loses_no_commit(start, read):
    reported = {"begun": set(), "answered": set()}
    for _ in range(5):
        first = len(reported["begun"])
        process = start(COMMIT_FOR_EVER)
        process.stdin.write(f"{first}\n")
        process.stdin.flush()
        lines = list(itertools.islice(process.stdout, 25 + first % 7))
        process.kill()
        for line in [*lines, *process.stdout]:
            if line.endswith("\n"):
                word, number = line.split()
                reported[word].add(f"d{number}.example")
        process.wait()
        with read() as ledger:
            stored = {registration.sign_domain for registration in ledger.all()}
            in_flight = {intent.sign_domain for intent in ledger.intents()}
        assert reported["answered"] <= stored
        assert reported["begun"] <= stored | in_flight
        assert len(stored - reported["answered"]) <= 5, "at most one per kill was not reported"
        assert not stored & in_flight
    assert len(reported["answered"]) > 50


def test_every_commit_reaches_the_disk_before_it_returns(write, path, account):
    write().close()
    connection, _ = open_for_writing(path, **account)
    settings = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "fullfsync")
    ]
    connection.close()
    assert settings == ["wal", 2, 1]
