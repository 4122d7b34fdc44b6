"""What docs/make_commands.py and docs/make_man.py tell of each command, from the command tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dkimctl.cli.main import LazyGroup

# What the usage of many commands names.
WORDS = {
    "SELECTION": (
        "`SELECTION` is any mix of domain names, globs such as `'*.example.com'` and spec files; "
        "without any, it is everything registered in the profile."
    ),
    "TIME": "A `TIME` is a number of seconds, or a number with `s`, `m`, `h` or `d`.",
}


class Option(NamedTuple):
    names: tuple[str, ...]
    value: str  # its metavar; empty for a flag
    help: str
    notes: tuple[str, ...]  # such as "at least 1"
    default: str  # or empty


def commands() -> Iterator[tuple[list[str], Any]]:
    """Every command and group: the words that call it, and itself."""
    return _walk(LazyGroup(), ["dkimctl"])


def _walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    yield path, command
    for name in getattr(command, "commands", ()):
        yield from _walk(command.get_command(None, name), [*path, name])


def arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument"]


def usage(path: list[str], command: Any) -> list[str]:
    """The words that call it, and its arguments."""
    words = [*path, *map(usage_of, arguments(command))]
    return [*words, "COMMAND"] if hasattr(command, "commands") else words


def usage_of(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required or name.startswith("[") else f"[{name}]"


def panels(command: Any) -> dict[str, list[Option]]:
    """The options in each panel of the help; those without a panel first."""
    found: dict[str, list[Option]] = {"": []}
    for option in command.params:
        if option.param_type_name == "option" and not option.hidden:
            found.setdefault(option.rich_help_panel or "", []).append(_option(option))
    return {name: options for name, options in found.items() if options}


def panel_title(panel: str) -> str:
    return panel if " " in panel else f"{panel} options"


def _option(option: Any) -> Option:
    notes = [_range(option.type)] if hasattr(option.type, "min") else []
    if option.multiple and "repeatable" not in (option.help or ""):
        notes.append("may be repeated")
    has_default = not option.is_flag and option.default is not None
    return Option(
        tuple(option.opts),
        "" if option.is_flag else _metavar(option),
        one_line(option.help),
        tuple(notes),
        str(option.default) if has_default else "",
    )


def _range(numbers: Any) -> str:
    if numbers.max is None:
        return f"at least {numbers.min}"
    return f"{numbers.min} to {numbers.max}"


def _metavar(option: Any) -> str:
    return option.metavar or {"integer range": "N", "int range": "N"}.get(option.type.name, "TEXT")


def paragraphs(text: str | None) -> list[str]:
    """Each on one line."""
    return [one_line(paragraph) for paragraph in (text or "").strip().split("\n\n")]


def one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def examples(command: Any) -> list[str]:
    """The lines below the title."""
    return [line.strip() for line in (command.epilog or "").splitlines()[1:]]
