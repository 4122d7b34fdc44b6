"""The files of a SQLite database: that they are ours alone, and hold no plain key."""

from __future__ import annotations

import os
from pathlib import Path

from dkimctl.errors import UsageError
from dkimctl.system.directories import prepare_directory
from dkimctl.system.ownership import fault_of, refuse

HINT = "check the file, its permissions and the free disk space, or use another data file"
OWN_DIRECTORY = "use a data file in a directory of your own"
_PLAIN_KEY = b"-----BEGIN PRIVATE KEY"
_CHUNK = 1 << 20  # bytes


def side_file(path: Path, suffix: str) -> Path:
    """One of the files that SQLite has beside a data file: `wal`, `shm` or `journal`."""
    return path.with_name(f"{path.name}-{suffix}")


def require_file(path: Path) -> None:
    """Create a missing file, and refuse a directory, or a file that other users can change."""
    side_files = (side_file(path, suffix) for suffix in ("wal", "shm", "journal"))
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a directory", hint="name a data file in it")
        prepare_directory(path.parent)
        refuse(fault_of(path, *side_files, in_own_group=True), UsageError, hint=OWN_DIRECTORY)
        if not path.exists():
            path.touch(mode=0o600)  # SQLite creates its side files with the same mode
            path.chmod(0o600)  # the umask may have removed more
    except OSError as error:
        raise UsageError(
            f"{path}: cannot create the service data file: {error.strerror}", hint=HINT
        ) from error


def require_writable(path: Path) -> None:
    """Raise UsageError for a file that cannot be written."""
    # SQLite would open it read-only, and fail at the first request that writes.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise UsageError(f"{path}: the service data file is not writable", hint=HINT)


def holds_plain_key(path: Path) -> bool:
    """Whether an unencrypted key, or a remainder of one, is in the file."""
    if not path.exists():
        return False
    end = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if _PLAIN_KEY in end + chunk:
                return True
            end = chunk[-len(_PLAIN_KEY) :]
    return False
