"""Lets several worker processes count together. It does not import prometheus_client."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dkimctl.errors import UsageError

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the directory made there is private


@contextmanager
def sharing_metrics() -> Iterator[None]:
    """Have the processes started in the block count together, in a private directory.

    Call it before `dkimctl.service.http.metrics` is imported, also by a parent that forks. A
    directory that the environment names already is used as it is. Files of a worker that has ended
    stay until the end of the block: counters must not go back.
    """
    if os.environ.get(DIRECTORY):
        require_directory()
        yield
        return
    os.environ[DIRECTORY] = directory = tempfile.mkdtemp(prefix="dkimctl-metrics-", dir=_parent())
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() == process:  # a worker that was forked leaves the block as well
            shutil.rmtree(directory, ignore_errors=True)
            del os.environ[DIRECTORY]


def require_directory() -> None:
    """Raise UsageError if the environment names a directory that cannot be used."""
    directory = os.environ.get(DIRECTORY)
    if directory and not (Path(directory).is_dir() and os.access(directory, os.W_OK | os.X_OK)):
        raise UsageError(
            f"in {DIRECTORY}: {directory} is not a directory that this user may write to",
            hint="create it, or unset the variable",
        )


def _parent() -> Path | None:
    """Memory if possible: a process dies when its mapped file does not fit on a full disk."""
    return _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK | os.X_OK) else None
