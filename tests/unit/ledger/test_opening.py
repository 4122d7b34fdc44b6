"""Opening the file, and committing to it, whatever the disk, the user and other processes do."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.opening import open_for_writing, require_disk_space, translate_errors
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
    require_disk_space(path, 1)


def test_every_commit_reaches_the_disk_before_it_returns(write, path, account):
    write().close()
    connection, _ = open_for_writing(path, **account)
    settings = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "fullfsync")
    ]
    connection.close()
    assert settings == ["wal", 2, 1]
