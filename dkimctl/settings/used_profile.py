"""The profile that `profile use` chose, in a file in the state directory."""

from __future__ import annotations

from pathlib import Path

from dkimctl.errors import UsageError
from dkimctl.settings.values import is_profile_name
from dkimctl.system.ownership import read_safe
from dkimctl.system.writing import delete_leftovers, write_private
from dkimctl.text.escaping import printable

_MAX_SIZE = 4096  # bytes


def read_used_profile(state_dir: Path) -> str | None:
    """The name, or None if there is none.

    Raises UsageError if the file cannot be read or is damaged, or if other users can change it.
    """
    path = _path(state_dir)
    try:
        data = read_safe(path, _MAX_SIZE, UsageError)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be read") from None
    name = data.decode("ascii", "replace").strip()
    if not is_profile_name(name):
        raise _unusable(path, "the file is damaged")
    return name


def write_used_profile(state_dir: Path, name: str | None) -> None:
    """Replace the name; None removes it. The caller holds `logins_lock`. Raises UsageError."""
    path = _path(state_dir)
    try:
        delete_leftovers(path)
        if name is None:
            path.unlink(missing_ok=True)
        else:
            write_private(path, f"{name}\n")
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


def _path(state_dir: Path) -> Path:
    return state_dir / "profile"


def _unusable(path: Path, reason: str) -> UsageError:
    message = f"cannot use {printable(str(path))}: {reason}"
    return UsageError(message, hint="fix or delete it, then run `dkimctl profile use NAME` again")
