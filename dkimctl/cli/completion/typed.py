"""What the words before the cursor mean: the command, and the values of its options."""

from __future__ import annotations

from typing import Any


class TypedWords:
    """Reads words as the parser would, though nothing has to be valid yet."""

    def __init__(self, root: Any) -> None:
        self.values: dict[str, list[str]] = {}  # by the name of the option or argument
        self.awaiting: Any = None  # the option whose value comes next
        self.is_unknown = False  # a command that does not exist
        self.only_arguments = False  # after `--`
        self._enter(root, None)

    def read(self, word: str) -> None:
        """Take in the next word."""
        if self.awaiting is not None:
            self._store(self.awaiting, word)
            self.awaiting = None
        elif self.only_arguments or not word.startswith("-") or word == "-":
            self._read_argument(word)
        elif word == "--":
            self.only_arguments = True
        elif word.startswith("--"):
            name, assigned, value = word.partition("=")
            self._read_option(name, value if assigned else None)
        else:
            self._read_short_options(word[1:])

    @property
    def is_group(self) -> bool:
        """Whether a command comes next."""
        return hasattr(self.command, "list_commands")

    @property
    def argument(self) -> Any:
        """The argument that comes next, or None."""
        return next(iter(self._arguments), None)

    @property
    def unused_options(self) -> list[Any]:
        """The options that can still be given."""
        options = {id(option): option for option in self._options.values()}
        return [
            option
            for option in options.values()
            if not option.hidden and (option.multiple or option.name not in self.values)
        ]

    def option(self, name: str) -> Any:
        """The option of this name, or None."""
        return self._options.get(name)

    def _enter(self, command: Any, parent: Any) -> None:
        self.command = command
        self.context = command.context_class(command, parent=parent, **command.context_settings)
        parameters = command.get_params(self.context)
        self._arguments = [each for each in parameters if each.param_type_name == "argument"]
        self._options = {
            name: option
            for option in parameters
            if option.param_type_name == "option"
            for name in (*option.opts, *option.secondary_opts)
        }

    def _read_argument(self, word: str) -> None:
        if self.is_group:
            command = self.command.get_command(self.context, word)
            if command is None:
                self.is_unknown = True
            else:
                self._enter(command, self.context)
        elif self._arguments:
            self._store(self._arguments[0], word)
            if self._arguments[0].nargs != -1:
                del self._arguments[0]

    def _read_option(self, name: str, value: str | None) -> None:
        option = self._options.get(name)
        if option is None:
            return
        if option.is_flag or option.count or value is not None:
            self._store(option, value or "")
        else:
            self.awaiting = option

    def _read_short_options(self, letters: str) -> None:
        for position, letter in enumerate(letters, 1):
            option = self._options.get(f"-{letter}")
            if option is not None and not (option.is_flag or option.count):
                self._read_option(f"-{letter}", letters[position:] or None)
                return
            self._read_option(f"-{letter}", None)

    def _store(self, parameter: Any, value: str) -> None:
        self.values.setdefault(parameter.name, []).append(value)
