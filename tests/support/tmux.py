"""A person at a terminal: bash in tmux, whose lines are typed and whose screen is read."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from processes import Cli

_LIMIT = 60.0  # seconds that a command may take
# bash signals each time that it is ready for the next line.
_PROFILE = """
PS1='$ '
unset HISTFILE
PROMPT_COMMAND='{signal}'
"""


class Answer(NamedTuple):
    """What is typed once a prompt is shown."""

    prompt: str
    text: str


class Terminal:
    """A terminal with bash, in the home and environment of `cli`; its files are in `directory`."""

    def __init__(
        self, cli: Cli, tmux: str, directory: Path, *, columns: int = 80, lines: int = 60
    ) -> None:
        self._tmux = [tmux, "-S", str(directory / "tmux.socket"), "-f", os.devnull]
        self._environment = cli.environment | {"TERM": "xterm-256color"}
        self._environment.pop("COLUMNS", None)
        profile = directory / "bashrc"
        signal = " ".join([*self._tmux, "wait-for", "-S", "ready"])
        profile.write_text(_PROFILE.format(signal=signal))
        shell = [*cli.prefix, "bash", "--noprofile", "--rcfile", str(profile), "-i"]
        size = ("-x", str(columns), "-y", str(lines))
        self._run("new-session", "-d", "-c", str(cli.home), *size, *shell)
        self._wait()

    def type(self, line: str, answers: Sequence[Answer] = ()) -> str:
        """What a command showed, with the line itself and what was typed as an answer."""
        self._run("clear-history")
        self._enter("clear")
        self._wait()
        self._run("clear-history")
        self._enter(line)
        for prompt, text in answers:
            self._wait_for(prompt)
            self._enter(text)
        self._wait()
        return self.screen().rstrip().removesuffix("$").rstrip() + "\n"

    def screen(self) -> str:
        """All that is shown since the line was typed, with wrapped lines joined."""
        return self._run("capture-pane", "-p", "-J", "-S", "-")

    def close(self) -> None:
        self._run("kill-server")

    def _enter(self, text: str) -> None:
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def _wait(self) -> None:
        """Until bash is ready for the next line, and shows that."""
        self._run("wait-for", "ready")
        self._wait_for("\n$")

    def _wait_for(self, prompt: str) -> None:
        deadline = time.monotonic() + _LIMIT
        while not f"\n{self.screen().rstrip()}".endswith(prompt.rstrip()):
            assert time.monotonic() < deadline, f"{prompt} is not shown\n{self.screen()}"
            time.sleep(0.05)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._environment, capture_output=True, text=True,
            timeout=_LIMIT, check=True,
        )  # fmt: skip
        return done.stdout
