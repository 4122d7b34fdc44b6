"""One `register`, `rotate run` and notification per account at a time: each has its own lock.

The lock is held by the operating system, so a killed process leaves no stale lock. The holder
writes its process ID to a `.holder` file next to the lock file, since Windows does not let a
locked file be read. Without `from __future__ import annotations`: see `dkimctl.models`.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from dkimctl import files
from dkimctl.errors import LedgerError
from dkimctl.text import format_duration

Purpose = Literal["register", "rotate", "notify"]  # files of locks begin with it
UNKNOWN = "another process"
# Process ID, since when.
_HOLDER = rb"([1-9]\d{0,9}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d)\n"


@contextlib.contextmanager
def account_lock(
    directory: Path,
    *,
    base_url: str,
    client_id: str,
    on_wait: Callable[[str], None],
    purpose: Purpose = "register",
    patience: float = math.inf,
) -> Iterator[None]:
    """Hold a lock of one account, a file in `directory`. Raises LedgerError.

    While another process holds it, this calls `on_wait` once, with what is known of that one, and
    waits for up to `patience` seconds; Ctrl-C stops that.
    """
    account = json.dumps([base_url, client_id]).encode()
    name = f"{purpose}-{hashlib.sha256(account).hexdigest()[:16]}"
    path, holder_file = directory / f"{name}.lock", directory / f"{name}.holder"
    with _translate_errors(path):
        files.prepare_directory(directory)
        files.refuse(files.fault_of(path, holder_file), LedgerError)
        unlock = files.try_lock(path)
    if unlock is None:
        on_wait(_find_holder(holder_file))
        with _translate_errors(path):
            try:
                unlock = files.wait_for_lock(path, seconds=patience)
            except TimeoutError as error:
                raise waited_too_long(_find_holder(holder_file), patience) from error
    try:
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        with _translate_errors(holder_file):
            _write_holder(holder_file, f"{os.getpid()} {since}\n".encode())
        try:
            yield
        finally:
            # If this fails, the file is like that of a killed process.
            with contextlib.suppress(OSError):
                _write_holder(holder_file, b"")
    finally:
        with contextlib.suppress(OSError):  # the end of the process releases the lock as well
            unlock()


def waited_too_long(holder: str, patience: float) -> LedgerError:
    return LedgerError(
        f"waited {format_duration(patience)} for another command of the same account ({holder})",
        hint="end that process if it hangs, then run the same command again",
    )


def _find_holder(holder_file: Path) -> str:
    """The holder of the lock, if the holder file names a process that runs here."""
    with (
        contextlib.suppress(OSError, OverflowError),
        open(holder_file, "rb", opener=files.open_without_following) as file,
    ):
        match = re.fullmatch(_HOLDER, file.read(64))  # not one that is half written
        if match and (pid := int(match[1])) != os.getpid():
            if sys.platform != "win32":  # there, os.kill would end that process
                with contextlib.suppress(PermissionError):  # another user's process
                    os.kill(pid, 0)
            return f"process {pid}, since {match[2].decode()}"
    return UNKNOWN


def _write_holder(holder_file: Path, content: bytes) -> None:
    """Write in place: Windows cannot replace a file that another process is reading."""
    with open(holder_file, "wb", opener=files.open_without_following) as file:
        file.write(content)


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "free space there and make it writable, or set DKIMCTL_STATE_DIR to a directory on "
        hint += "a file system that has locks"
        raise LedgerError(
            f"cannot lock the account with {error.filename or path}: {error.strerror or error}",
            hint=files.access_hint(path, hint) if isinstance(error, PermissionError) else hint,
        ) from error
