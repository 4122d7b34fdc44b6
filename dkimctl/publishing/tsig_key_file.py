"""Reads the file of a TSIG key, as safely as a private key of SSH.

No error quotes the content: any part of it may be the secret.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

from dkimctl.errors import UsageError
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.publishing.tsig_key_formats import parse_tsig_key
from dkimctl.system.ownership import Fault, fault_of, path_fault, refuse, status_fault
from dkimctl.system.reading import read_regular
from dkimctl.text.escaping import printable

_MAX_SIZE = 16 * 1024  # bytes; a key file has about 100
_OWN_DIRECTORY = "keep the key in a directory that only you can write to"


def read_tsig_key(file: str) -> TsigKey:
    """The key in a file of `tsig-keygen` or `keymgr -t`, or in one line `ALGORITHM:NAME:SECRET`.

    Raises UsageError if it cannot be read or is invalid, if other users can change it, and, as ssh
    does, if they can read it.
    """
    try:
        return _read(Path(file), printable(file))
    except UsageError as error:
        # The frames of the traceback hold the content.
        raise error.with_traceback(None) from None


def _read(path: Path, name: str) -> TsigKey:
    try:
        data = _read_protected(path)
    except FileNotFoundError:
        hint = "correct key_file, or write the key there: `tsig-keygen NAME`, or `keymgr -t NAME`"
        raise UsageError(f"no such TSIG key file: {name}", hint=hint) from None
    # ValueError: a path that no file can have. RuntimeError: links in a circle, before Python 3.13.
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "the path is invalid"
        hint = "check key_file and the permissions"
        raise UsageError(f"cannot read the TSIG key file {name}: {reason}", hint=hint) from None
    try:
        return parse_tsig_key(data)
    except UsageError as error:
        raise UsageError(f"TSIG key file {name}: {error.message}", hint=error.hint) from None


def _read_protected(path: Path) -> bytes:
    """Raises UsageError for a file that other users can read or change, and OSError."""

    def check(status: os.stat_result) -> None:
        refuse(_fault(path, status), UsageError, hint=_OWN_DIRECTORY)

    target = path.resolve(strict=True)  # the secrets of containers are links
    if not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    check(target.stat())
    refuse(path_fault(path), UsageError, hint=_OWN_DIRECTORY)
    refuse(fault_of(target, in_own_group=True), UsageError, hint=_OWN_DIRECTORY)
    return read_regular(target, _MAX_SIZE, check=check)


def _fault(path: Path, status: os.stat_result) -> Fault | None:
    """That of a private file; but a group may read that of root, such as the group of a service."""
    is_lent = sys.platform != "win32" and status.st_uid == 0 != os.geteuid()
    others_can_read = status.st_mode & (stat.S_IROTH | stat.S_IWOTH)
    return status_fault(path, status, private=not is_lent or bool(others_can_read))
