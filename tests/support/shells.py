"""Interactive shells on a pseudo-terminal, for tests of completion."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

LIMIT = 60.0  # seconds for one answer of a shell
# A function of the name of the program: the completion asks the program, what is run is noted.
_NOTE = {
    "bash": """dkimctl() { printf '%s\\n' "$@" > ran.new; mv ran.new ran; }""",
    "zsh": """dkimctl() { printf '%s\\n' "$@" > ran.new; mv ran.new ran; }""",
    "fish": "function dkimctl; printf '%s\\n' $argv > ran.new; mv ran.new ran; end",
}
READY = "ready-to-type"


class InteractiveShell:
    """A shell with its files in `home`, in a terminal of 40 lines and 200 columns."""

    def __init__(self, shell: str, path: str, home: Path, environment: Mapping[str, str]) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.shell = shell
        self._ran = home / "ran"
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self._process = subprocess.Popen(
            [path, "-i"], stdin=secondary, stdout=secondary, stderr=secondary, cwd=home,
            env={**environment, "TERM": "xterm", "SHELL": path}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(secondary, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads
        )  # fmt: skip
        os.close(secondary)
        self._shown = ""
        self.send(f"{_NOTE[shell]}\n")
        self.send(f"echo {READY[:5]}''{READY[5:]}\n")
        self.expect(READY)

    def send(self, text: str) -> None:
        os.write(self._primary, text.encode())

    def expect(self, text: str) -> str:
        """Wait until `text` is shown; gives what was shown up to then, since the last time."""
        deadline = time.monotonic() + LIMIT
        while text not in self._shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown, but: {self._shown!r}"
            if select.select([self._primary], [], [], 0.2)[0]:
                self._shown += os.read(self._primary, 65536).decode(errors="replace")
        seen, _, self._shown = self._shown.partition(text)
        return seen

    def completed(self, typed: str) -> list[str]:
        """The words that are run when this is typed (with `\\t` where TAB is pressed) and Enter."""
        self._ran.unlink(missing_ok=True)
        self.send(f"{typed}\n")
        deadline = time.monotonic() + LIMIT
        while not self._ran.exists():
            assert time.monotonic() < deadline, f"{typed!r} did not run; shown: {self._shown!r}"
            if select.select([self._primary], [], [], 0.05)[0]:
                self._shown += os.read(self._primary, 65536).decode(errors="replace")
        return self._ran.read_text().splitlines()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._primary)
