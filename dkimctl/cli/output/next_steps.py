"""The commands that come next, as notes and hints name them.

Each runs as it stands, but for words in capitals. Options of the profile are added where it is
shown: see `named_commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from dkimctl.cli.output.named_commands import as_typed

SPEC_FILE = "domains.yaml"  # what `init` writes, and the documentation names
_MAX_TYPED = 5  # domains in a command to copy


def select_specs(files: Sequence[str], domains: Sequence[str]) -> Sequence[str]:
    """The words that select what spec files and `domains` register.

    None, which is all, for standard input, or for many domains.
    """
    if "-" in files or len(domains) > _MAX_TYPED:
        return ()
    from dkimctl.ledger.selection import is_file

    return (*(file if is_file(file) else f"./{file}" for file in files), *domains)


def select_domains(domains: Iterable[str], otherwise: Sequence[str] = ()) -> Sequence[str]:
    """The words that select these domains; `otherwise`, which is all, if there are many."""
    words = list(dict.fromkeys(domains))
    return words if len(words) <= _MAX_TYPED else otherwise


def publish(selection: Sequence[str], *options: str, by_target: bool = False) -> str:
    """`by_target`: the config file says how to change DNS; `options` are for that."""
    if by_target:
        return f"`dkimctl publish{_typed([*selection, *options])}`"
    return (
        f"`dkimctl show-dns{_typed(selection)} --format nsupdate --output add.txt && "
        "nsupdate -k KEYFILE add.txt`"
    )


def write_zone_files(selection: Sequence[str]) -> str:
    return f"`dkimctl show-dns{_typed(selection)} --format zone --find-zones --output-dir zones`"


def wait_for(selection: Sequence[str]) -> str:
    return f"`dkimctl check-dns{_typed(selection)} --wait 30m`"


def wait_for_transfers(selection: Sequence[str]) -> str:
    return (
        "the DNS target has the records: check that the servers of the zone get them from it, then "
        f"{wait_for(selection)}"
    )


def check(selection: Sequence[str]) -> str:
    return f"`dkimctl check-dns{_typed(selection)}`"


def show_all(selection: Sequence[str]) -> str:
    return f"`dkimctl show-dns{_typed(selection)}`"


def register_file(file: object) -> str:
    return f"`dkimctl register{_typed([str(file)])}`"


def plan_file(file: object) -> str:
    return f"`dkimctl register --dry-run{_typed([str(file)])}`"


def rotate(selection: Sequence[str], *, by_target: bool = False) -> str:
    """What replaces keys; `by_target`: from a timer, since the config file says how."""
    if by_target:
        return "`dkimctl rotate run` once a day, from a timer"
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
