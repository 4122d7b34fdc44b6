"""The completion scripts of the shells, and where each belongs.

Each has the command tree as data, and the shell's own functions, in `functions.*`. It needs
`dkimctl` for names only: it asks the program that is typed, or else the `dkimctl` of the PATH, as
`names.py` says.
"""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from typing import Any, NamedTuple

from dkimctl.cli.completion.cases import cases
from dkimctl.cli.completion.rows import variables
from dkimctl.cli.completion.tree import describe


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

_COMPDEF = "#compdef dkimctl\n"  # the first line of a file in fpath
_HEAD = """\
# Completion of dkimctl in {shell}. `dkimctl completion --help` says where to put it.
# `dkimctl completion {shell}` writes it from the command tree.

"""


def script(shell: Shell, root: Any) -> str:
    """The script of a shell for the commands below `root`."""
    tree = describe(root)
    head = (_COMPDEF if shell is Shell.ZSH else "") + _HEAD.format(shell=shell)
    data = variables(tree) if shell is Shell.FISH else cases(tree, with_help=shell is Shell.ZSH)
    functions = files(__package__).joinpath(f"functions.{shell}").read_text(encoding="utf-8")
    return f"{head}{data}\n{functions}"
