"""Turns Typer's errors into ours, without what was typed: it may be a secret in the wrong place."""

from __future__ import annotations

import re
from typing import Any

from typer.exceptions import TyperException

from dkimctl.errors import UsageError

_OPTION_NAME = r"--[a-z-]{1,30}|-[a-zA-Z]"
_UNKNOWN_COMMAND = r"(?s)No such command .*?(Did you mean [a-z', -]+\?)?\.?"
_EXTRA_ARGUMENT = r"(?s)(Got unexpected extra argument).*"


def usage_error(error: TyperException) -> UsageError:
    """An error with Typer's message, but without the value of an option or argument."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "dkimctl"
    text = " ".join(_message(error).split()).rstrip(".")
    return UsageError(text[:1].lower() + text[1:], hint=f"run `{path} --help`")


def _message(error: Any) -> str:
    """By the name of the error's class, since Typer does not export them."""
    text: str = error.format_message()
    match type(error).__name__:
        case "NoSuchOption" if not re.fullmatch(_OPTION_NAME, error.option_name):
            return "No such option"
        case "BadParameter":
            return f"Invalid value for {_name(error)}{_expected(error)}"
    if unknown := re.fullmatch(_UNKNOWN_COMMAND, text):
        return f"No such command. {unknown[1] or ''}"
    return re.sub(_EXTRA_ARGUMENT, r"\1", text)


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
