"""The command tree as functions that bash and zsh both understand.

Each sets variables of its caller. Only zsh shows help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from dkimctl.cli.completion.tree import Command, Option, Tree

_TAKES_VALUE = """\
# Whether an option takes a value: the same in all commands.
_dkimctl_takes_value() {{
    case $1 in
        {names}) ;;
        *) return 1 ;;
    esac
}}
"""
_COMMAND = """\
# What can follow a command: other commands, options by their keys, and arguments.
_dkimctl_command() {{
    {empty}
    case $1 in
{cases}
    esac
}}
"""
_OPTION = """\
# An option by its key: its names, and where its values come from.
_dkimctl_option() {{
    {empty}
    case $1 in
{cases}
    esac
}}
"""


def cases(tree: Tree, *, with_help: bool) -> str:
    """The three functions. A source has words, and `@kinds` of them."""
    empty_help = " help=" if with_help else ""
    return "\n".join(
        [
            _TAKES_VALUE.format(names=" | ".join(tree.take_value)),
            _COMMAND.format(
                empty=f"subcommands= option_keys= arguments=() repeats={empty_help}",
                cases="\n".join(_command(each, with_help) for each in tree.commands),
            ),
            _OPTION.format(
                empty=f"names= source= repeatable={empty_help}",
                cases="\n".join(
                    _option(key, option, with_help) for key, option in tree.options.items()
                ),
            ),
        ]
    )


def _command(command: Command, with_help: bool) -> str:
    values = {
        "subcommands": " ".join(command.commands),
        "option_keys": " ".join(command.options),
        "repeats": _flag(command.repeats),
        "help": command.help if with_help else "",
    }
    lines = [*_assignments(values), *_array("arguments", command.arguments)]
    return _case(command.path, "\n            ".join(["", *lines]))


def _option(key: str, option: Option, with_help: bool) -> str:
    values = {
        "names": " ".join(option.names),
        "source": option.source,
        "repeatable": _flag(option.repeatable),
        "help": option.help if with_help else "",
    }
    return _case(key, "".join(f" {each}" for each in _assignments(values)))


def _case(pattern: str, body: str) -> str:
    return f"        {quote(pattern)}){body} ;;"


def _assignments(values: Mapping[str, str]) -> Iterator[str]:
    return (f"{name}={quote(value)}" for name, value in values.items() if value)


def _array(name: str, values: Sequence[str]) -> Iterator[str]:
    if values:
        yield f"{name}=({' '.join(map(quote, values))})"


def _flag(is_set: bool) -> str:
    return "1" if is_set else ""
