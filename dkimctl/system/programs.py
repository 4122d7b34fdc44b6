"""Running another program, without a shell, for a limited time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence


def run_program(
    words: Sequence[str], data: bytes, *, seconds: float, environment: Mapping[str, str]
) -> int | None:
    """The exit status of a program that gets `data` on standard input; None if time ran out.

    Negative: the number of the signal that ended it. Its output is discarded. When time runs out,
    or on an interruption, it is ended together with the programs that it has started. Raises
    OSError if it cannot be started.
    """
    # A file, since a program that does not read a pipe, or closes it, would disturb us.
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        process = subprocess.Popen(  # noqa: S603 - the user's own program, from the config file
            words,
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program that is still running, and its process group, which has its process ID."""
    if process.poll() is not None:  # the ID may be that of another process now
        return
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
