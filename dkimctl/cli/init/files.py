"""The files that `init` writes: both, or none, and never over something."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path

from dkimctl.errors import OutputError, UsageError
from dkimctl.system.directories import prepare_directory
from dkimctl.system.ownership import directory_fault, refuse
from dkimctl.system.writing import create_files
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import listed

# Until signing starts: longer than the time in which a key without a record counts as urgent.
_LEAD = timedelta(days=7)


def start_of_signing(today: date) -> datetime:
    """Midnight in a week, with the offset that the local zone has then."""
    return datetime.combine(today + _LEAD, time()).astimezone()


def require_absent(*files: Path, hint: str) -> None:
    """Raise UsageError that names the files that exist, also as links."""
    if existing := [printable(str(file)) for file in files if os.path.lexists(file)]:
        verb = "exists" if len(existing) == 1 else "exist"
        raise UsageError(f"{listed(existing)} already {verb}; nothing was written", hint=hint)


def require_directory(file: Path, option: str) -> None:
    """Raise UsageError unless the directory of a file that the user names exists."""
    if not file.parent.is_dir():
        raise UsageError(
            f"the directory {printable(str(file.parent))} does not exist",
            hint=f"create it, or name another file with {option}",
        )


def prepare_config_directory(file: Path) -> None:
    """Create the directory of the config file in its default place, for the user alone.

    Raises UsageError if other users could change what is in it.
    """
    try:
        prepare_directory(file.parent)
        fault = directory_fault(file.parent)
    except OSError as error:
        raise UsageError(
            f"cannot create {printable(str(file.parent))}: {error.strerror or error}",
            hint="name another file with --config FILE",
        ) from None
    refuse(fault, UsageError, hint="name another file with --config FILE")


def write_files(texts: Mapping[Path, str], *, config: Path | None) -> None:
    """Write all files or none; only the user can read the `config`. Raises DkimctlError."""
    try:
        create_files(texts, private=[] if config is None else [config])
    except OSError as error:
        files = " and ".join(printable(str(file)) for file in texts)
        raise OutputError(
            f"cannot write {files}: {error.strerror or 'a file is there by now'}",
            hint="check the permissions and the space there; nothing was written",
        ) from None
