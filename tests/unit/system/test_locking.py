"""Locks against other processes, which may use another library."""

from __future__ import annotations

import errno
from pathlib import Path

import filelock
import pytest

from dkimctl.system.files import lock_file_of, locked, try_lock, wait_for_lock


def test_what_is_locked_is_locked_for_others(tmp_path: Path) -> None:
    path = tmp_path / "logins.json"
    with locked(path):
        assert try_lock(lock_file_of(path)) is None
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(lock_file_of(path)).acquire(timeout=0)
    with filelock.FileLock(lock_file_of(path)).acquire(timeout=0):
        assert try_lock(lock_file_of(path)) is None


def test_an_error_in_the_block_releases_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "logins.json"
    with pytest.raises(ValueError, match="in the block"), locked(path):
        raise ValueError("in the block")
    with locked(path):
        pass


def test_waiting_ends_with_an_error_that_names_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "logins.lock"
    unlock = try_lock(path)
    assert unlock is not None
    with pytest.raises(TimeoutError, match=f"another process holds the lock {path}") as raised:
        wait_for_lock(path, seconds=0)
    assert raised.value.errno == errno.ETIMEDOUT
    unlock()
    wait_for_lock(path, seconds=0)()
