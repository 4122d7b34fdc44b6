"""Systems that allow only a few threads: a fake one, and a real limit for processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from dkimctl.threads import start_daemon

_CAPABILITIES = "-all,+dac_override,+dac_read_search"  # to read the Python installation of root
_FIRST_UID = 64_000  # of 1,000, without processes; a user of its own for each worker of pytest
_START_TWO = """
import threading
done = threading.Event()
for _ in range(2):
    threading.Thread(target=done.wait, daemon=True).start()
"""


class FewThreads:
    """Starts threads as a system that allows `allowed` threads at a time."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._threads: list[threading.Thread] = []

    def __call__(self, work: Callable[[], object], name: str) -> threading.Thread | None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= self._allowed:
            return None
        thread = start_daemon(work, name)
        assert thread is not None
        self._threads.append(thread)
        return thread


def limit_words(count: int) -> list[str]:
    """The beginning of a command that may have `count` threads and processes, all in all.

    The limit does not apply to root, and counts whatever else a user runs: so root becomes a user
    without processes, and others use a namespace, in which only its own processes count.
    """
    limit = ["prlimit", f"--nproc={count}:{count}", "--"]
    if os.getuid() != 0:
        return ["unshare", "--user", "--map-current-user", *limit]
    capabilities = [f"--{kind}={_CAPABILITIES}" for kind in ("inh-caps", "ambient-caps")]
    return ["setpriv", "--clear-groups", f"--reuid={user_id()}", f"--regid={user_id()}",
            *capabilities, f"--bounding-set={_CAPABILITIES}", *limit]  # fmt: skip


def user_id() -> int:
    """The user that limited commands run as."""
    return os.getuid() or _FIRST_UID + os.getpid() % 1000


def require_limits() -> None:
    """Skip the test unless `limit_words` works here."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs the limits and namespaces of Linux")
    for count, succeeds in ((2, False), (3, True)):
        words = [*limit_words(count), sys.executable, "-c", _START_TWO]
        try:
            done = subprocess.run(words, capture_output=True, check=False)
        except FileNotFoundError as error:
            pytest.skip(f"{error.filename} is not installed")
        if (done.returncode == 0) != succeeds:
            pytest.skip(f"the number of threads cannot be limited here: {done.stderr.decode()}")
