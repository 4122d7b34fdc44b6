"""Creating directories for the user's files."""

from __future__ import annotations

import itertools
from pathlib import Path

from dkimctl.system.ownership import directory_fault


def prepare_directory(directory: Path) -> None:
    """Create a missing directory, unless the place is unsafe: `directory_fault` then says why.

    It and its parents get mode 0700, whatever the umask. Check it afterwards: another user may have
    created it first. Raises OSError.
    """
    if directory.is_dir() or directory_fault(directory):
        return
    for missing in _missing(directory):
        _create(missing)


def _missing(directory: Path) -> list[Path]:
    """The directory and those above that are missing, from the top."""
    ways = itertools.chain((directory,), directory.parents)
    return list(itertools.takewhile(lambda path: not path.is_dir(), ways))[::-1]


def _create(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not directory.is_dir():
            raise
    else:
        directory.chmod(0o700)  # the umask may have removed more
