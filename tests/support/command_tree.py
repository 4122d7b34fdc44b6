"""The commands of `dkimctl`, and the examples of their help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dkimctl.cli.main import LazyGroup


def tree(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands, with the words that call them."""
    command = LazyGroup() if command is None else command
    yield words, command
    for name in getattr(command, "commands", ()):
        yield from tree(command.get_command(None, name), (*words, *name.split()))


def help_examples() -> dict[str, list[str]]:
    """The lines of the examples, each once, by the first word of the command whose help has them.

    Those of `dkimctl --help` are listed under "".
    """
    examples: dict[str, dict[str, None]] = {}
    for words, command in tree():
        _, *lines = command.epilog.splitlines()
        of_command = examples.setdefault(words[0] if words else "", {})
        of_command |= dict.fromkeys(line.strip() for line in lines if not line.startswith("  #"))
    return {name: [*lines] for name, lines in examples.items()}
