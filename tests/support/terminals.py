"""Text that is safe to print on a terminal, and programs that run on one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from processes import on_terminal


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
    command: Sequence[str], env: Mapping[str, str], *, keys: str = "", columns: int = 80
) -> Shown:
    """Run a command on a terminal; `keys` are typed as soon as it shows "ready"."""
    return Shown(*on_terminal(command, [("ready", keys)] * bool(keys), (24, columns), env=env))
