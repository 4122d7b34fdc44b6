"""The command line before it is parsed: what must be known even if parsing fails."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

from dkimctl.cli.output.streams import Color

_SHORT_PROFILE = "-[nqvy]*p"
_SHORT_FORMAT = "-[nqvy]*f"  # also after the letters of flags, such as in -nf


def wants_json(args: Sequence[str]) -> bool:
    """Whether to report errors as JSON."""
    return _last_value(args, "--format", _SHORT_FORMAT) == "json"


def is_plugin(args: Sequence[str]) -> bool:
    """Whether the command is to answer as a monitoring plugin does, even if it fails."""
    return "check-dns" in args and _last_value(args, "--format", _SHORT_FORMAT) == "nagios"


def given_profile(args: Sequence[str]) -> dict[str, str | bool | None]:
    """The flags that choose the profile and the config file."""
    return {
        "profile": _last_value(args, "--profile", _SHORT_PROFILE),
        "sandbox": "--sandbox" in args,
        "config": _last_value(args, "--config"),
    }


def wanted_color(args: Sequence[str]) -> Color:
    """What --color asks for; the parser reports an invalid value."""
    value = _last_value(args, "--color")
    return next((color for color in Color if color == value), Color.AUTO)


def split_command(
    args: Sequence[str], commands: Container[str], options: Iterable[Any]
) -> tuple[str, list[str]]:
    """The name of the command that `args` begin with, which may have two words, and what follows.

    Between the two, `options` may stand, which are those of all commands.
    """
    first, *rest = args
    takes_value = {name: not option.is_flag for option in options for name in option.opts}
    at = 0
    while at < len(rest) and (name := rest[at].partition("=")[0]) in takes_value:
        at += 2 if takes_value[name] and name == rest[at] else 1
    two = " ".join([first, *rest[at : at + 1]])
    return (two, rest[:at] + rest[at + 1 :]) if two in commands else (first, rest)


def _last_value(args: Iterable[str], option: str, short: str | None = None) -> str | None:
    """The last value of an option; `short` is a pattern of its short form."""
    value = None
    words = iter(args)
    for word in words:
        if word == "--":
            break
        name, equals, attached = word.partition("=")
        if name == option:
            value = attached if equals else next(words, None)
        elif short and (found := re.match(short, word)):
            value = word[found.end() :] or next(words, None)
    return value
