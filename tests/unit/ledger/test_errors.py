"""Errors with the ledger: disks that are full or not writable, and locks of other programs."""

from __future__ import annotations

import errno
import sqlite3

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.opening import translate_errors
from dkimctl.models import DomainSpec

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


def test_no_ledger_is_created_on_a_full_disk(small_disk, on_disk, write):
    small_disk.fill(leaving=0)
    with pytest.raises(LedgerError, match="not enough space for the ledger"):
        write(path=on_disk)
    small_disk.relieve()
    with write(path=on_disk) as ledger:
        ledger.commit(begun=[[DomainSpec("example.com")]])
        assert len(ledger.intents()) == 1


def test_a_ledger_on_a_read_only_file_system_can_be_read_but_not_written(
    small_disk, on_disk, write, read, make_registration
):
    with write(path=on_disk) as ledger:
        ledger.record([make_registration()])
    small_disk.forbid_writing()
    with read(path=on_disk) as reader:
        assert list(reader.all()) == [make_registration()]
    with pytest.raises(LedgerError, match="cannot use the ledger") as caught:
        write(path=on_disk)
    assert "DKIMCTL_STATE_DIR" in caught.value.hint
    with pytest.raises(LedgerError, match="Read-only file system"):
        write(path=small_disk.path / "other" / "ledger.db")


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


def test_using_a_closed_ledger_is_a_ledger_error(write, make_registration):
    ledger = write()
    ledger.close()
    for use in (
        lambda: ledger.record([make_registration()]),
        ledger.check,
        lambda: ledger.of_domain("example.com"),
        lambda: ledger.intents_of("example.com"),
    ):
        with pytest.raises(LedgerError, match="closed"):
            use()
