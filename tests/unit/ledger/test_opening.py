"""Opening the file, and committing to it, whatever the disk, the user and other processes do."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.opening import SqliteStore, open_for_writing, translate_errors
from dkimctl.models import DomainSpec

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
        assert {known.record.value for known in ledger.all()} == {"v" * 415}
    assert not journal.exists()


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
    small_disk.fill(leaving=330_000)
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


def test_a_lock_of_another_program_is_reported(write, path):
    with write():
        holder = sqlite3.connect(path)
        holder.execute("BEGIN IMMEDIATE")
        other = sqlite3.connect(path, timeout=0)
        with pytest.raises(LedgerError, match="locked by another program"), translate_errors(path):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        holder.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_system_that_reports_no_size_is_assumed_to_have_space():
    path = Path("/proc/ledger.db")
    assert shutil.disk_usage(path.parent).free == 0
    with closing(sqlite3.connect(":memory:")) as connection:
        SqliteStore(connection, path).require_disk_space(1)


def test_every_commit_reaches_the_disk_before_it_returns(write, path, account):
    write().close()
    connection, _ = open_for_writing(path, **account)
    settings = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "fullfsync")
    ]
    connection.close()
    assert settings == ["wal", 2, 1]


@pytest.mark.parametrize("batch_size", [1, 50])
def test_answers_fit_into_the_space_required_for_them(
    small_disk, on_disk, write, make_registration, batch_size
):
    """In batches of any size, with their intents, in random order."""
    answers = [make_registration(f"{hash(str(n)):x}.example") for n in range(400)]
    with write(path=on_disk) as ledger:
        small_disk.fill(leaving=11_400_000)
        ledger.require_disk_space(len(answers))
        with pytest.raises(LedgerError, match="not enough space for the ledger"):
            ledger.require_disk_space(len(answers) + 50)
        for first in range(0, len(answers), batch_size):
            batch = answers[first : first + batch_size]
            ledger.commit(begun=[[DomainSpec(*answer[:2]) for answer in batch]])
            ledger.commit(answered=batch, settled=[answer.key for answer in batch])
        assert len(list(ledger.all())) == 400


@pytest.mark.parametrize("with_index", [True, False])
def test_a_log_on_a_read_only_disk_is_read_or_reported(
    small_disk, on_disk, write, read, path, make_registration, with_index
):
    with write() as ledger:
        ledger.record([make_registration()])
        shutil.copytree(path.parent, on_disk.parent)  # as a kill leaves them
    if not with_index:
        on_disk.with_name("ledger.db-shm").unlink()
    small_disk.forbid_writing()
    if with_index:
        with read(path=on_disk) as ledger:
            assert list(ledger.all()) == [make_registration()]
        return
    with pytest.raises(LedgerError, match=r"ledger\.db-wal holds changes to it") as caught:
        read(path=on_disk)
    assert f"make {on_disk.parent} writable" in caught.value.hint


def test_a_ledger_on_a_read_only_disk_is_read_and_refused_for_writing(
    small_disk, on_disk, write, read, make_registration
):
    with write(path=on_disk) as ledger:
        ledger.record([make_registration()])
    small_disk.forbid_writing()
    with read(path=on_disk) as ledger:
        assert list(ledger.all()) == [make_registration()]
    with pytest.raises(LedgerError, match="cannot use the ledger") as caught:
        write(path=on_disk)
    assert f"read and write in the directory {on_disk.parent}" in caught.value.hint
