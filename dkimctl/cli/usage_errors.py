"""Turns Typer's errors into ours, without what was typed: it may be a secret in the wrong place."""

from __future__ import annotations

import re
from typing import Any

from typer.exceptions import TyperException

from dkimctl.errors import UsageError

_OPTION_NAME = r"--[a-z-]{1,30}|-[a-zA-Z]"
_UNKNOWN_COMMAND = r"(?s)No such command '(.*)'\."
_EXTRA_ARGUMENT = r"(?s)(Got unexpected extra argument).*"
_REFUSED_VALUE = r"(?s)'(.*)' is not "


def usage_error(error: TyperException) -> UsageError:
    """An error with Typer's message, but without the value of an option or argument."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "dkimctl"
    text = " ".join(_message(error).split()).rstrip(".")
    hint = _hint(error, context)
    return UsageError(text[:1].lower() + text[1:], hint=hint or f"run `{path} --help`")


def _message(error: Any) -> str:
    """By the name of the error's class, since Typer does not export them."""
    text: str = error.format_message()
    match type(error).__name__:
        case "NoSuchOption" if not re.fullmatch(_OPTION_NAME, error.option_name):
            return "No such option"
        case "NoSuchOption":
            return f"No such option: {error.option_name}"
        case "BadParameter":
            return f"Invalid value for {_name(error)}{_expected(error)}"
    if text.startswith("No such command "):
        return "No such command"
    return re.sub(_EXTRA_ARGUMENT, r"\1", text)


def _hint(error: Any, context: Any) -> str:
    """What to type instead; "" if nothing is known."""
    from dkimctl.cli import usage_hints
    from dkimctl.cli.removed import replacement

    match type(error).__name__:
        case "BadOptionUsage":
            return usage_hints.for_no_value(error)
        case _ if context is None:
            return ""
        case "NoSuchOption":
            option = error.option_name
            removed = replacement(context.command_path, option)
            return removed or usage_hints.for_option(option, context)
        case "BadParameter" if value := re.match(_REFUSED_VALUE, error.message):
            removed = replacement(context.command_path, value[1])
            return removed or usage_hints.for_value(value[1], error.param)
        case "MissingParameter":
            return usage_hints.for_missing(context)
    if error.message.startswith("Got unexpected extra argument"):
        return usage_hints.for_extra(context)
    if unknown := re.match(_UNKNOWN_COMMAND, error.message):
        removed = replacement(context.command_path, unknown[1])
        return removed or usage_hints.for_command(unknown[1], context.command, context.command_path)
    return ""


def _name(error: Any) -> str:
    """The option, without its short form, or the argument."""
    if error.param.param_type_name == "option":
        return f"'{error.param.opts[0]}'"
    hint: str = error.param.get_error_hint(error.ctx)
    return hint


def _expected(error: Any) -> str:
    """What the option takes."""
    kind = error.param.type
    if choices := getattr(kind, "choices", None):
        return f": it is not one of {', '.join(map(str, choices))}"
    if getattr(kind, "min", None) is not None:
        limits = f"{kind.min} up" if kind.max is None else f"{kind.min} to {kind.max}"
        return f": it is not a whole number from {limits}"
    return ""
