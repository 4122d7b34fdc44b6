"""Opening the file: a reader waits for no writer, and changes nothing."""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import PurePosixPath, PureWindowsPath

import pytest

from dkimctl.files import sqlite_uri

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
