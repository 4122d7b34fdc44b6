"""Read a file of secrets, unless somebody else could have read it, or put it there."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from dkimctl.errors import CredentialsError
from dkimctl.files import is_own, is_private, lets_others_replace, read_regular

_LARGEST = 16 * 1024 * 1024  # bytes; a login has some 2,000


def read_private(path: Path) -> bytes:
    """The file's content.

    Raises CredentialsError where others than its owner, who must be the user, can use the file
    or replace it, or it is a link; OSError where it cannot be read, or is no file.
    """
    _require_private_place(path)
    return read_regular(
        path, _LARGEST, follow=False, check=lambda status: _require_private(path, status)
    )


def _require_private_place(path: Path) -> None:
    if path.is_symlink():
        raise CredentialsError(
            f"{path} is a symbolic link", hint="put the file itself there, or delete the link"
        )
    place = path.parent
    if lets_others_replace(place.stat()):
        mend = f"run `chmod go-w {shlex.quote(str(place))}`" if is_own(place.stat()) else ""
        raise CredentialsError(
            f"other users can change what is in {place}, the place of the credentials",
            hint=mend or "name a directory of your own in DKIMCTL_STATE_DIR, such as one in there",
        )


def _require_private(path: Path, status: os.stat_result) -> None:
    if not is_own(status):
        raise CredentialsError(
            f"{path} belongs to another user",
            hint="run this as that user, or name another directory in DKIMCTL_STATE_DIR",
        )
    if not is_private(status):
        raise CredentialsError(
            f"{path} can be read or changed by other users",
            hint=f"run `chmod 600 {shlex.quote(str(path))}`",
        )
