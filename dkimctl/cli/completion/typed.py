"""What the words before the cursor mean: the command, and the values of its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dkimctl.cli.arguments import split_command

_CURSOR = "\0"  # the word at the cursor; no other word has this character


class TypedWords:
    """Words as the parser reads them, though nothing has to be valid yet.

    `next` is the option or argument that takes the word at the cursor; None: a command does, if
    this `is_group`, or nothing. `is_unknown`: there is no such command.
    """

    def __init__(self, root: Any, words: Sequence[str]) -> None:
        self.values: dict[str, list[str]] = {}  # by the name of the option or argument
        self.next: Any = None
        self.is_unknown = False
        self._read(root, None, [*words, _CURSOR])

    def option(self, name: str) -> Any:
        """The option of this name, or None."""
        return next((each for each in self._options if name in _names(each)), None)

    def option_names(self) -> list[tuple[str, Any]]:
        """The names of the options that can still be given, each with its option."""
        return [
            (name, option)
            for option in self._options
            if not option.hidden and (option.multiple or option.name not in self.values)
            for name in _names(option)
        ]

    def _read(self, command: Any, parent: Any, words: list[str]) -> None:
        self.command = command
        self.context = command.context_class(
            command,
            parent=parent,
            resilient_parsing=True,
            ignore_unknown_options=True,
            allow_interspersed_args=command.allow_interspersed_args,
            **command.context_settings,
        )
        self.is_group = hasattr(command, "list_commands")
        parameters = {each.name: each for each in command.get_params(self.context)}
        self._options = [each for each in parameters.values() if each.param_type_name == "option"]
        values, others, _ = command.make_parser(self.context).parse_args(words)
        for name, value in values.items():
            self._store(parameters[name], value if isinstance(value, list | tuple) else [value])
        if self.is_group and others and others[0] != _CURSOR:
            self._enter(others)

    def _enter(self, words: Sequence[str]) -> None:
        name, rest = split_command(words, self.command.commands, self._options)
        command = self.command.get_command(self.context, name)
        if command is None:
            self.is_unknown = True
        else:
            self._read(command, self.context, rest)

    def _store(self, parameter: Any, values: Sequence[object]) -> None:
        if _CURSOR in values:
            self.next = parameter
        if given := [value for value in values if isinstance(value, str) and value != _CURSOR]:
            self.values.setdefault(parameter.name, []).extend(given)
        elif True in values:  # a flag
            self.values[parameter.name] = [""]


def _names(option: Any) -> Sequence[str]:
    return [*option.opts, *option.secondary_opts]
