"""The completion scripts of the shells, and where each belongs.

They have the whole command tree, so they need `dkimctl` for names only: for these they ask the
program that is typed, or else the `dkimctl` of the PATH, as `names.py` says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from dkimctl.cli.completion.bash import bash_script
from dkimctl.cli.completion.fish import fish_script
from dkimctl.cli.completion.tree import describe
from dkimctl.cli.completion.zsh import zsh_script


class Shell(StrEnum):
    """The supported shells."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Installation(NamedTuple):
    """How to install a script for one user."""

    place: str  # where it is for, after the name of the shell
    commands: tuple[str, ...]


_BASH_DIRECTORY = "~/.local/share/bash-completion/completions"
INSTALLATIONS = {
    Shell.BASH: [
        Installation(
            ", with the package bash-completion",
            (
                f"mkdir -p {_BASH_DIRECTORY}",
                f"dkimctl completion bash > {_BASH_DIRECTORY}/dkimctl",
            ),
        ),
        Installation(
            ", without it",
            (
                "dkimctl completion bash > ~/.dkimctl-completion.bash",
                "echo '. ~/.dkimctl-completion.bash' >> ~/.bashrc",
            ),
        ),
    ],
    Shell.ZSH: [
        Installation(
            ", if ~/.zshrc has no compinit yet",
            (
                "mkdir -p ~/.zfunc",
                "dkimctl completion zsh > ~/.zfunc/_dkimctl",
                "echo 'fpath=(~/.zfunc $fpath); autoload -U compinit; compinit' >> ~/.zshrc",
            ),
        ),
        Installation(
            ", if it has one",
            ("echo 'source <(dkimctl completion zsh)' >> ~/.zshrc",),
        ),
    ],
    Shell.FISH: [
        Installation(
            "",
            (
                "mkdir -p ~/.config/fish/completions",
                "dkimctl completion fish > ~/.config/fish/completions/dkimctl.fish",
            ),
        )
    ],
}

_WRITERS = {Shell.BASH: bash_script, Shell.ZSH: zsh_script, Shell.FISH: fish_script}


def script(shell: Shell, root: Any) -> str:
    """The script of a shell for the commands below `root`."""
    return _WRITERS[shell](describe(root))
