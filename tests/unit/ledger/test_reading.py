"""Who only reads waits for nobody, and changes nothing."""

from __future__ import annotations

import sqlite3
import time
from pathlib import PurePosixPath, PureWindowsPath

import pytest

from dkimctl.ledger.opening import sqlite_uri

COUNT = """
try:
    with Ledger.open_existing(path, **ACCOUNT) as ledger:
        print(len(list(ledger.all())))
except LedgerError as error:
    print(error.message, error.hint, sep="\\n")
"""
# Writes more than SQLite's cache holds, so that half of it is in the log, and waits to be killed.
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


def test_a_reader_makes_no_file(path, read):
    with read() as ledger:
        assert list(ledger.all()) == []
        assert ledger.quarantined is None
    assert not path.parent.exists()


def test_a_reader_neither_waits_for_a_writer_nor_sees_half_its_work(
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


def test_what_a_killed_writer_left_half_written_is_not_there(start, read, path):
    killed(start(HALF_WRITTEN), "half-way")
    left = [(found, found.read_bytes()) for found in (path, path.with_name("ledger.db-wal"))]
    assert len(left[1][1]) > 100_000
    with read() as ledger:
        assert [found.sign_domain for found in ledger.all()] == ["d1.example"]
    assert [(found, found.read_bytes()) for found, _ in left] == left


def test_readers_get_on_with_a_writer_that_commits_without_pause(start, read):
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


def test_a_read_only_directory_is_read(elsewhere, write, make_registration):
    path = elsewhere.path / "ledger.db"
    with write(path=path) as ledger:
        ledger.record([make_registration()])
    path.chmod(0o644)
    elsewhere.path.chmod(0o555)
    assert elsewhere.run(COUNT, path) == "1\n"
    assert [found.name for found in elsewhere.path.iterdir()] == ["ledger.db"]


@pytest.mark.parametrize("with_index", [True, False])
def test_a_log_in_a_read_only_directory_is_read_or_told_of(
    elsewhere, write, make_registration, with_index
):
    path, log = elsewhere.path / "ledger.db", elsewhere.path / "ledger.db-wal"
    with write(path=path) as ledger:
        ledger.record([make_registration()])
        left = [(found, found.read_bytes()) for found in elsewhere.path.iterdir()]
    for found, content in left:  # as a kill leaves them
        found.write_bytes(content)
        found.chmod(0o644)
    if not with_index:
        path.with_name("ledger.db-shm").unlink()
    elsewhere.path.chmod(0o555)
    said = elsewhere.run(COUNT, path)
    if with_index:
        assert said == "1\n"
    else:
        assert f"cannot read the ledger {path}" in said
        assert f"{log.name} holds changes to it" in said
        assert f"make {path.parent} writable" in said
    assert log.read_bytes() == dict(left)[log]


def test_a_ledger_that_the_user_may_not_read_is_told(elsewhere, write):
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
def test_a_path_is_quoted_in_sqlites_way(path, uri):
    assert sqlite_uri(path.as_uri()) == uri
