"""Text that is safe to print on a terminal, and programs that run on one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from processes import LIMIT, talk


def is_harmless(text: str) -> bool:
    """Whether it is one line without control sequences or invisible characters."""
    return all(char.isprintable() or char in "\u00a0\u3000" for char in text)


class Shown(NamedTuple):
    """What a program showed on a terminal, and its exit status."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.replace("\r", "").splitlines()


def run_on_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    keys: str = "",
    size: tuple[int, int] = (24, 80),
) -> Shown:
    """Run a command in a session of its own, on a terminal of `size` (lines, columns).

    `keys` are typed as soon as it shows "ready".
    """
    import fcntl
    import pty
    import struct
    import termios

    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    process = subprocess.Popen(
        command, stdin=secondary, stdout=secondary, stderr=secondary, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(secondary, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        env=environment,
    )  # fmt: skip
    os.close(secondary)
    try:
        text = talk(primary, [("ready", keys)] if keys else [])
        return Shown(process.wait(LIMIT), text)
    finally:
        process.kill()
        process.wait()
        os.close(primary)
