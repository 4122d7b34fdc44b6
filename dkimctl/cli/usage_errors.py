"""Turns Typer's errors into ours, without what was typed: it may be a secret in the wrong place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from typer.exceptions import TyperException

from dkimctl.cli.removed import replacement
from dkimctl.errors import UsageError
from dkimctl.text.durations import parse_duration

_OPTION_NAME = r"--[a-z-]{1,30}|-[a-zA-Z]"
_UNKNOWN_COMMAND = r"(?s)No such command '(.*)'\."
_EXTRA_ARGUMENT = r"(?s)(Got unexpected extra argument).*"
_REFUSED_VALUE = r"(?s)'(.*)' is not "
_LONGEST = 40  # characters: comparing takes quadratic time
_FILE = r".+\.(?:ya?ml|json|txt|csv)"
_DURATION = r"[0-9]{1,4}[smhdw]"
_EXAMPLE = r"\n  (dkimctl .*)"
_SECRETS = ("--secret", "--client-secret", "--password", "--token", "--access-token")


def usage_error(error: TyperException) -> UsageError:
    """An error with Typer's message, but without the value of an option or argument."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "dkimctl"
    text = " ".join(_message(error).split()).rstrip(".")
    hint = _hint(error, context) or f"run `{path} --help`"
    return UsageError(text[:1].lower() + text[1:], hint=hint)


def _message(error: Any) -> str:
    """By the name of the error's class, since Typer does not export them."""
    kind, text = type(error).__name__, str(error.format_message())
    if kind == "NoSuchOption":
        is_name = re.fullmatch(_OPTION_NAME, error.option_name)
        return f"No such option: {error.option_name}" if is_name else "No such option"
    if kind == "BadParameter":  # the option without its short form, or the argument
        is_option = error.param.param_type_name == "option"
        name = f"'{error.param.opts[0]}'" if is_option else error.param.get_error_hint(error.ctx)
        taken, expected = error.param.type, ""
        if choices := _choices(error.param):
            expected = f": it is not one of {', '.join(choices)}"
        elif getattr(taken, "min", None) is not None:
            limits = f"{taken.min} up" if taken.max is None else f"{taken.min} to {taken.max}"
            expected = f": it is not a whole number from {limits}"
        return f"Invalid value for {name}{expected}"
    if text.startswith("No such command "):
        return "No such command"
    return re.sub(_EXTRA_ARGUMENT, r"\1", text)


def _hint(error: Any, context: Any) -> str:
    """What to type instead, which never quotes what was typed; "" if nothing is known."""
    kind, message = type(error).__name__, str(error.message)
    if kind == "BadOptionUsage" and message.endswith("requires an argument."):
        return f"write its value after {error.option_name}"
    if context is None:
        return ""
    path, command = context.command_path, context.command
    if kind == "NoSuchOption":
        return replacement(path, error.option_name) or _for_option(error.option_name, command)
    if kind == "BadParameter" and (value := re.match(_REFUSED_VALUE, message)):
        return replacement(path, value[1]) or _for_value(value[1], error.param)
    if kind == "MissingParameter":  # the first example of the command's help
        example = re.search(_EXAMPLE, command.epilog or "")
        takes_file = any(one.metavar == "FILE" for one in command.params if one.required)
        pipe = "; - is standard input" if takes_file else ""
        return f"for example, `{example[1]}`{pipe}" if example else ""
    if message.startswith("Got unexpected extra argument"):
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        names = " ".join(str(one.metavar or one.name).upper() for one in arguments)
        return f"`{path}` takes only {names or 'options'}: see its --help"
    if unknown := re.match(_UNKNOWN_COMMAND, message):
        return replacement(path, unknown[1]) or _for_command(unknown[1], command, path)
    return ""


def _for_option(typed: str, command: Any) -> str:
    """For an option that the command does not have; "" if none of ours resembles it."""
    name = typed.lower().replace("_", "-").partition("=")[0][:_LONGEST]
    known = {one: option for option in command.params for one in option.opts}
    if name in known:
        return f"did you mean {name}?"
    if (word := name.removeprefix("--")) in _choices(known.get("--format")):
        return f"write --format {word}"
    if name in _SECRETS:
        return "no option takes a secret: `dkimctl login` asks for it, or reads --secret-stdin"
    near = _near(name, (one for one in known if one.startswith("--")), cutoff=0.7)
    return f"did you mean {near}?" if near else ""


def _for_command(typed: str, group: Any, path: str) -> str:
    """For a command that the group does not have."""
    word = typed.lower()[:_LONGEST]
    if near := _near(word.replace("_", "-"), group.commands, cutoff=0.65):
        return f"did you mean `{path} {near}`?"
    if path != "dkimctl":
        return f"the commands are {', '.join(group.commands)}"
    is_file = re.fullmatch(_FILE, word)
    return "to register the domains of a file: `dkimctl register FILE`" if is_file else ""


def _for_value(typed: str, option: Any) -> str:
    """For a value that an option or argument does not take; "" if there is nothing to suggest."""
    name = option.opts[0] if option.param_type_name == "option" else ""
    if choices := _choices(option):
        near = _near(typed.lower()[:_LONGEST], choices, cutoff=0.5)
        return f"did you mean {name} {near}?".replace("  ", " ") if near else ""
    if option.metavar == "SECONDS" and re.fullmatch(_DURATION, typed):
        with suppress(UsageError):
            return f"it is in seconds: write {name} {parse_duration(typed):.0f}"
        return ""
    has_default = isinstance(option.default, int)
    return f"write a number, such as {name} {option.default}" if has_default else ""


def _choices(option: Any) -> list[str]:
    return [str(choice) for choice in getattr(getattr(option, "type", None), "choices", None) or ()]


def _near(word: str, known: Iterable[str], *, cutoff: float) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return near[0] if near else ""
