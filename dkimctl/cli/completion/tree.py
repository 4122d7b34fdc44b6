"""The command tree as the shells' scripts need it: plain data, in which nothing is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dkimctl.cli.completion.values import source_of

_Walked = tuple[tuple[str, ...], Any, list[Any]]  # path, command and parameters


class Option(NamedTuple):
    """An option; without a source, it is a flag or takes free text."""

    names: tuple[str, ...]
    source: str  # words separated by spaces; see `values.py`
    repeatable: bool
    help: str


class Command(NamedTuple):
    """A command; `rotate`, which also takes arguments, is not the only one with commands below."""

    path: str  # words separated by spaces; empty for `dkimctl` itself
    help: str
    commands: tuple[str, ...]  # the words that can follow
    options: tuple[str, ...]  # their keys in `Tree.options`
    arguments: tuple[str, ...]  # their sources
    repeats: bool  # the last argument


class Tree(NamedTuple):
    """All commands, and all options by a key: what several commands share is here once."""

    commands: list[Command]
    options: dict[str, Option]
    take_value: list[str]  # the names of all options that do, in every command that has them


def describe(root: Any) -> Tree:
    """The tree below the root command, which imports all commands."""
    walked = list(_walk(root, None, ()))
    tree = Tree([], {}, _names_with_value(walked))
    paths = [path for path, _, _ in walked]
    for path, command, parameters in walked:
        shown = [each for each in parameters if not getattr(each, "hidden", False)]
        options = [each for each in shown if each.param_type_name == "option"]
        arguments = [each for each in shown if each.param_type_name == "argument"]
        tree.commands.append(
            Command(
                " ".join(path),
                _one_line(command.get_short_help_str(limit=100)),
                tuple(each[-1] for each in paths if each and each[:-1] == path),
                tuple(_key(_option(each), tree.options) for each in options),
                tuple(_source(each) for each in arguments),
                any(each.nargs < 0 for each in arguments),
            )
        )
    return tree


def _walk(command: Any, parent: Any, path: tuple[str, ...]) -> Iterator[_Walked]:
    """Each command that is not hidden, with its path and parameters."""
    context = command.context_class(
        command, parent=parent, resilient_parsing=True, **command.context_settings
    )
    yield path, command, command.get_params(context)
    for name in getattr(command, "commands", ()):
        below = command.get_command(context, name)
        if not below.hidden:
            yield from _walk(below, context, (*path, *name.split()))


def _names_with_value(walked: list[_Walked]) -> list[str]:
    """Scripts need not know the command to tell which words are values of options."""
    options = [each for *_, all_ in walked for each in all_ if each.param_type_name == "option"]
    take_value = {name for each in options if not each.is_flag for name in each.opts}
    flags = {name for each in options if each.is_flag for name in each.opts}
    if both := take_value & flags:
        raise ValueError(f"options with a value in one command, and without in another: {both}")
    return sorted(take_value)


def _option(option: Any) -> Option:
    # Those of --help come in any order.
    names = tuple(sorted(option.opts, key=lambda name: not name.startswith("--")))
    return Option(names, _source(option), bool(option.multiple), _one_line(option.help or ""))


def _source(parameter: Any) -> str:
    return "" if getattr(parameter, "is_flag", False) else " ".join(source_of(parameter) or ())


def _key(option: Option, options: dict[str, Option]) -> str:
    """The key of an option, such as `format` or `format.2`; adds it to `options` if it is new."""
    name = option.names[0].lstrip("-")
    key, number = name, 1
    while options.setdefault(key, option) != option:
        number += 1
        key = f"{name}.{number}"
    return key


def _one_line(text: str) -> str:
    return " ".join(text.split())
