"""What tests need of the machine: without it they are skipped, with what to install."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from shutil import which
from typing import NoReturn

import pytest

NO_NAMESPACE = "this user may not make a namespace (run as root, or allow user namespaces)"
# Debian has these, with many servers, but they are not in the PATH of an ordinary user.
_SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_POSTGRESQL = Path("/usr/lib/postgresql")  # one directory a version


def extend_path() -> None:
    """Let tests, and the programs that they start, find servers as an ordinary user.

    In place of the machine's crontab and systemctl, they find programs that change nothing.
    """
    path = [str(Path(__file__).parent / "system"), *os.environ.get("PATH", "").split(os.pathsep)]
    path += [directory for directory in _SYSTEM_DIRECTORIES if directory not in path]
    path += map(str, sorted(_POSTGRESQL.glob("*/bin"), reverse=True))
    os.environ["PATH"] = os.pathsep.join(path)


def program(name: str) -> str:
    """The path of a program; gives up without it."""
    if name == "faketime":
        _remove_semaphores()
    return which(name) or give_up(f"{name} is not installed: CONTRIBUTING.md says what to install")


def _remove_semaphores() -> None:
    """Remove those of killed processes: faketime does not start if one has the ID of its own."""
    for file in Path("/dev/shm").glob("*faketime_s*_*"):
        if not Path("/proc", file.name.rpartition("_")[2]).exists():
            with contextlib.suppress(PermissionError):
                file.unlink(missing_ok=True)


def give_up(reason: str) -> NoReturn:
    """Skip the test; with DKIMCTL_REQUIRE_TOOLS=1, fail instead."""
    if os.environ.get("DKIMCTL_REQUIRE_TOOLS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
