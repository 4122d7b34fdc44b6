"""The commands that come next, as notes and hints name them.

Each runs as it stands, but for words in capitals. Options of the profile are added where it is
shown: see `named_commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dkimctl.cli.output.named_commands import as_typed


def selection_of(file: str) -> Sequence[str]:
    """The words that select what a spec file registers; none, which is all, for standard input."""
    if file == "-":
        return ()
    from dkimctl.ledger.selection import is_file

    return (file if is_file(file) else f"./{file}",)


def publish(selection: Sequence[str]) -> str:
    return (
        f"`dkimctl show-dns{_typed(selection)} --format nsupdate --output add.txt && "
        "nsupdate -k KEYFILE add.txt`"
    )


def write_zone_files(selection: Sequence[str]) -> str:
    return f"`dkimctl show-dns{_typed(selection)} --format zone --find-zones --output-dir zones`"


def wait_for(selection: Sequence[str]) -> str:
    return f"`dkimctl check-dns{_typed(selection)} --wait 30m`"


def show_all(selection: Sequence[str]) -> str:
    return f"`dkimctl show-dns{_typed(selection)}`"


def register_file(file: object) -> str:
    return f"`dkimctl register{_typed([str(file)])}`"


def rotate(selection: Sequence[str]) -> str:
    return f"`dkimctl rotate{_typed(selection)}`"


def rotate_retired(selection: Sequence[str], *options: str) -> str:
    """The command that lists retired keys, without backticks."""
    return f"dkimctl rotate{_typed(selection)} --retired{_typed(options)}"


def forget(selection: Sequence[str], *options: str) -> str:
    words = _typed([*(selection or ["*"]), *options])
    return f"`dkimctl ledger forget{words} --output forgotten.json`"


def same_command(*, without: Sequence[str] = (), more: Sequence[str] = ()) -> str:
    """The command as it was typed, but for some words; it has no backticks."""
    words = [word for word in sys.argv[1:] if word not in without]
    return f"dkimctl{_typed([*words, *more])}"


def _typed(words: Sequence[str]) -> str:
    """The words as a shell needs them, after a space; "" for none."""
    return "".join(f" {as_typed(word)}" for word in words)
