"""Disks that are full or not writable, and ledgers that others hold."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.errors import translate_errors
from dkimctl.ledger.health import require_disk_space
from dkimctl.models.registration import DomainSpec

TRY_TO_OPEN = """
try:
    Ledger.open(path, **ACCOUNT)
except LedgerError as error:
    print(error.message, error.hint, sep="\\n")
"""


@pytest.fixture
def on_disk(small_disk):
    return small_disk.path / "state" / "ledger.db"


def fill_up(ledger, make_registration):
    """Commit until the disk is full; what was kept, and the error."""
    kept = []
    for number in range(10_000):
        answer = make_registration(f"d{number:04}.example")
        try:
            ledger.commit(answered=[answer], begun=[[DomainSpec(f"e{number:04}.example")]])
        except LedgerError as error:
            return kept, error
        kept.append(answer)
    raise AssertionError("the disk is never full")


def test_a_full_disk_loses_nothing_that_was_committed_and_can_be_freed(
    small_disk, on_disk, write, read, make_registration
):
    small_disk.fill(leaving=300_000)
    with write(path=on_disk) as ledger:
        kept, error = fill_up(ledger, make_registration)
        assert f"there is no space for the ledger {on_disk}" in error.message
        assert f"free space at {on_disk.parent}" in error.hint
        assert len(kept) > 10
        assert list(ledger.all()) == kept
        assert [intent.sign_domain[1:] for intent in ledger.intents()] == [
            found.sign_domain[1:] for found in kept
        ]
        with read(path=on_disk) as reader:
            assert list(reader.all()) == kept
        small_disk.relieve()
        more = make_registration("more.example")
        ledger.record([more])
        assert list(ledger.all()) == [*kept, more]
    with read(path=on_disk) as reader:
        assert list(reader.all()) == [*kept, more]


def test_what_is_on_a_full_disk_is_read_also_after_the_run(
    small_disk, on_disk, write, read, make_registration
):
    small_disk.fill(leaving=300_000)
    with write(path=on_disk) as ledger:
        kept, _ = fill_up(ledger, make_registration)
    small_disk.fill(leaving=0)
    with read(path=on_disk) as reader:
        assert list(reader.all()) == kept


def test_a_closed_ledger_is_read_though_not_a_byte_is_free(
    small_disk, on_disk, write, read, make_registration
):
    with write(path=on_disk) as ledger:
        ledger.record([make_registration()])
    small_disk.fill(leaving=0)
    with read(path=on_disk) as reader:
        assert list(reader.all()) == [make_registration()]
    with pytest.raises(LedgerError, match="no space for the ledger"):
        write(path=on_disk)
    small_disk.relieve()
    with write(path=on_disk) as ledger:
        assert list(ledger.all()) == [make_registration()]


def test_no_ledger_is_begun_on_a_full_disk(small_disk, on_disk, write):
    small_disk.fill(leaving=0)
    with pytest.raises(LedgerError, match="no space for the ledger"):
        write(path=on_disk)
    small_disk.relieve()
    with write(path=on_disk) as ledger:
        ledger.commit(begun=[[DomainSpec("example.com")]])
        assert len(ledger.intents()) == 1


def test_too_little_room_is_told_before_anything_is_sent(small_disk, on_disk, write):
    with write(path=on_disk) as ledger:
        ledger.require_disk_space(400)
        with pytest.raises(
            LedgerError, match=r"5000 entries may need 69\.\d MB, and only 16\.\d MB"
        ) as caught:
            ledger.require_disk_space(5000)
    assert f"free space at {on_disk.parent}" in caught.value.hint


@pytest.mark.parametrize("batch_size", [1, 7, 50, 400])
def test_what_the_room_is_enough_for_does_fit(
    small_disk, on_disk, write, make_registration, batch_size
):
    """And that in batches of any size, with their intents, as it is sent, in no order."""
    answers = [make_registration(f"{hash(str(n)):x}.example") for n in range(400)]
    with write(path=on_disk) as ledger:
        small_disk.fill(leaving=9_700_000)
        ledger.require_disk_space(len(answers))
        with pytest.raises(LedgerError):
            ledger.require_disk_space(len(answers) + 50)
        for first in range(0, len(answers), batch_size):
            batch = answers[first : first + batch_size]
            ledger.commit(begun=[[DomainSpec(*found[:2]) for found in batch]])
            ledger.commit(answered=batch, settled=[found.key for found in batch])
        assert len(list(ledger.all())) == 400


def test_no_disk_has_room_for_everything(write):
    with write() as ledger, pytest.raises(LedgerError, match="no space for the ledger"):
        ledger.require_disk_space(10**15)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_system_that_does_not_tell_its_size_is_believed_to_have_room():
    path = Path("/proc/ledger.db")
    assert shutil.disk_usage(path.parent).free == 0
    assert require_disk_space(path, 1) == 1


def test_a_read_only_file_system_is_read_and_not_written(
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
def test_a_read_only_directory_is_refused_before_anything_is_sent(elsewhere, write, there):
    path = elsewhere.path / "ledger.db"
    if there:
        write(path=path).close()
        path.chmod(0o666)
    elsewhere.path.chmod(0o555)
    said = elsewhere.run(TRY_TO_OPEN, path)
    assert f"cannot use the ledger {path}: " in said
    assert f"check that you can read and write in the directory {path.parent}" in said


def test_a_read_only_file_is_refused_before_anything_is_sent(elsewhere, write):
    path = elsewhere.path / "ledger.db"
    write(path=path).close()
    path.chmod(0o444)
    elsewhere.path.chmod(0o777)
    assert "attempt to write a readonly database" in elsewhere.run(TRY_TO_OPEN, path)


def test_a_ledger_that_another_program_holds_is_told(write, path):
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
        (OSError(errno.ENOSPC, "No space left on device"), "no space for the ledger"),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot use .*: Permission denied$"),
        (OSError(errno.EIO, "Input/output error"), "cannot use .*: Input/output error$"),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), "a closed database"),
        (OverflowError("too large"), "too large"),
    ],
)
def test_whatever_happens_is_a_ledger_error_with_a_hint(path, error, message):
    with pytest.raises(LedgerError, match=message) as caught, translate_errors(path):
        raise error
    assert caught.value.hint
    assert caught.value.__cause__ is error


def test_a_closed_ledger_is_told(write, make_registration):
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
