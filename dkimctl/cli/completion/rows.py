"""The command tree as rows in variables of fish, of which its builtins find one fast."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.cli.completion.tree import Command, Option, Tree

_VARIABLES = """\
# The options that take a value: the same in all commands.
set -g __dkimctl_take_value {take_value}

# command|commands below|keys of options|,argument,...|repeats the last|help
set -g __dkimctl_commands \\
{commands}

# key|names|where its values come from|repeatable|help
set -g __dkimctl_options \\
{options}
"""


def variables(tree: Tree) -> str:
    """The three variables."""
    return _VARIABLES.format(
        take_value=" ".join(tree.take_value),
        commands=_lines(_command(each) for each in tree.commands),
        options=_lines(_option(key, option) for key, option in tree.options.items()),
    )


def _command(command: Command) -> str:
    arguments = "".join(f",{source}" for source in command.arguments)
    commands, options = " ".join(command.commands), " ".join(command.options)
    repeats = "1" if command.repeats else ""
    return "|".join([command.path, commands, options, arguments, repeats, command.help])


def _option(key: str, option: Option) -> str:
    repeatable = "1" if option.repeatable else ""
    return "|".join([key, " ".join(option.names), option.source, repeatable, option.help])


def _lines(rows: Iterable[str]) -> str:
    return " \\\n".join(f"    {_quoted(row)}" for row in rows)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
