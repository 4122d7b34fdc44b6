"""Completes the commands that messages name, so that they run with the profile in use.

Messages name a command in backticks and without a profile, such as `dkimctl login`. The options
are added where it is shown: `dkimctl login --profile agency`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dkimctl.settings.profile import SourceKind
from dkimctl.settings.values import SANDBOX, is_shown

if TYPE_CHECKING:
    from dkimctl.settings.profile import Settings

_GROUPS = "ledger|profile"
_WITHOUT_OPTIONS = ("serve", "service", "completion")
_QUOTED = r"`[^`]+`"
# A command and its words, up to a pipe or to the next command.
_COMMAND = rf"\bdkimctl ((?:{_GROUPS}) [a-z-]+|[a-z][a-z-]*)([^|&;`]*)"
_OWN_PROFILE = r"(?:^|\s)(?:--profile|--sandbox|-p)\b"
_OWN_CONFIG = r"(?:^|\s)--config\b"


class CommandOptions(NamedTuple):
    """The options of the profile in use, as one types them; "" for none."""

    profile: str = ""
    config: str = ""


def given_options(flags: Mapping[str, Any], environ: Mapping[str, str]) -> CommandOptions:
    """The options for messages before the profile is known, without what may be a secret."""
    name = SANDBOX if flags["sandbox"] else flags["profile"] or environ.get("DKIMCTL_PROFILE")
    option = _profile_option(name) if name and is_shown(name) else ""
    return CommandOptions(option, _config_option(flags))


def options_of(settings: Settings, flags: Mapping[str, Any]) -> CommandOptions:
    """The options for a profile; none for the default, unless it was named."""
    is_default = settings.sources["profile"].kind is SourceKind.DEFAULT
    option = "" if is_default else _profile_option(settings.profile.name)
    return CommandOptions(option, _config_option(flags))


def complete_commands(text: str, options: CommandOptions) -> str:
    """`text` with the options in each command in backticks that uses a profile."""
    if not any(options) or "`" not in text:
        return text
    return re.sub(_QUOTED, lambda quoted: _complete(quoted[0], options), text)


def _complete(quoted: str, options: CommandOptions) -> str:
    return re.sub(_COMMAND, lambda command: _with_options(command, options), quoted)


def _with_options(command: re.Match[str], options: CommandOptions) -> str:
    name, rest = command[1], command[2]
    first_word = name.split(" ", 1)[0]
    if first_word in _WITHOUT_OPTIONS or "--help" in rest:
        return command[0]
    added = ""
    if options.profile and first_word != "profile" and not re.search(_OWN_PROFILE, rest):
        added = f" {options.profile}"
    if options.config and not re.search(_OWN_CONFIG, rest):
        added += f" {options.config}"
    return f"dkimctl {name}{added}{rest}"


def _profile_option(name: str) -> str:
    return "--sandbox" if name == SANDBOX else f"--profile {name}"


def _config_option(flags: Mapping[str, Any]) -> str:
    return f"--config {as_typed(flags['config'])}" if flags["config"] else ""


def as_typed(word: str) -> str:
    """The word as a shell needs it."""
    if sys.platform == "win32":
        import subprocess

        return subprocess.list2cmdline([word])
    import shlex

    return shlex.quote(word)
