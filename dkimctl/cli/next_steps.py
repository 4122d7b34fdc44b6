"""The commands that come next, as notes and hints name them.

Each runs as it stands, but for words in capitals. Messages name a command in backticks and without
a profile, such as `dkimctl login`; the options are added where it is shown:
`dkimctl login --profile agency`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dkimctl.files import new_name
from dkimctl.names import is_file
from dkimctl.settings.profile import SourceKind, option
from dkimctl.settings.values import SANDBOX, is_shown

if TYPE_CHECKING:
    from dkimctl.settings.profile import Settings

SPEC_FILE = "domains.yaml"  # what `init` writes, and the documentation names
_MAX_TYPED = 5  # domains in a command to copy
# A command and its words, up to a pipe or to the next command.
_COMMAND = r"\bdkimctl ((?:ledger|profile) [a-z-]+|rotate run\b|[a-z][a-z-]*)([^|&;`]*)"


def select_specs(files: Sequence[str], domains: Sequence[str]) -> Sequence[str]:
    """The words that select what spec files and `domains` register.

    None, which is all, for standard input, or for many domains.
    """
    if "-" in files or len(domains) > _MAX_TYPED:
        return ()
    return (*(file if is_file(file) else f"./{file}" for file in files), *domains)


def select_domains(domains: Iterable[str], otherwise: Sequence[str] = ()) -> Sequence[str]:
    """The words that select these domains; `otherwise`, which is all, if there are many."""
    words = list(dict.fromkeys(domains))
    return words if len(words) <= _MAX_TYPED else otherwise


def command(name: str, selection: Iterable[object] = (), *options: str) -> str:
    """A command in backticks, with the words that select keys, or files, and its options."""
    return f"`{' '.join(['dkimctl', name, *map(as_typed, [*map(str, selection), *options])])}`"


def publish(selection: Sequence[str], *options: str, by_target: bool = False) -> str:
    """`by_target`: the config file says how to change DNS; `options` are for that."""
    if by_target:
        return command("publish", selection, *options)
    file = new_name("add.txt")
    script = command("show-dns", selection, "--format", "nsupdate", "--output", file)
    return f"{script[:-1]} && nsupdate -k KEYFILE {file}`"


def enter(selection: Sequence[str]) -> str:
    value = command("show-dns", selection, "--format", "value")
    return f"{command('handoff', selection)}, or {value}"


def wait_for(selection: Sequence[str]) -> str:
    return command("check-dns", selection, "--wait", "30m")


def rotate_retired(selection: Sequence[str], *options: str) -> str:
    """The command that lists retired keys, without backticks."""
    return command("rotate", selection, "--retired", *options)[1:-1]


def same_command(*, without: Sequence[str] = (), more: Sequence[str] = ()) -> str:
    """The command as it was typed, but for some words; it has no backticks."""
    words = [word for word in sys.argv[1:] if word not in without]
    return " ".join(["dkimctl", *map(as_typed, [*words, *more])])


class CommandOptions(NamedTuple):
    """The options of the profile in use, as one types them; "" for none."""

    profile: str = ""
    config: str = ""
    names: Mapping[str, str] = {}  # how hints call the config file, and what set an option


def given_options(flags: Mapping[str, Any], environ: Mapping[str, str]) -> CommandOptions:
    """The options for messages before the profile is known, without what may be a secret."""
    name = SANDBOX if flags["sandbox"] else flags["profile"] or environ.get("DKIMCTL_PROFILE")
    return _options_for(name if name and is_shown(name) else "", flags)


def options_of(
    settings: Settings, flags: Mapping[str, Any], config_file: object = ""
) -> CommandOptions:
    """The options for a profile; none for the default, unless it was named."""
    is_default = settings.sources["profile"].kind is SourceKind.DEFAULT
    names = {"the config file": f"the config file {config_file}"}
    for key, source in settings.sources.items():
        if source.kind is SourceKind.CONFIG:
            names[option(key).name] = f"{key} in {source.name}"
        elif source.kind is SourceKind.ENVIRONMENT:
            names[option(key).name] = source.name
    return _options_for("" if is_default else settings.profile.name, flags)._replace(names=names)


def _options_for(name: str, flags: Mapping[str, Any]) -> CommandOptions:
    profile = "--sandbox" if name == SANDBOX else f"--profile {name}"
    config = f"--config {as_typed(flags['config'])}" if flags["config"] else ""
    return CommandOptions(profile if name else "", config)


def complete_commands(text: str, options: CommandOptions) -> str:
    """`text` with the options in each command in backticks that uses a profile."""
    if not (options.profile or options.config) or "`" not in text:
        return text

    def with_options(command: re.Match[str]) -> str:
        name, rest = command[1], command[2]
        first_word = name.split(" ", 1)[0]
        if first_word in ("serve", "service", "completion", "schema", "help") or "--help" in rest:
            return command[0]
        own = r"(?:^|\s)(?:--profile|--sandbox|-p)\b"
        if options.profile and first_word != "profile" and not re.search(own, rest):
            name += f" {options.profile}"
        if options.config and not re.search(r"(?:^|\s)--config\b", rest):
            name += f" {options.config}"
        return f"dkimctl {name}{rest}"

    return re.sub(r"`[^`]+`", lambda quoted: re.sub(_COMMAND, with_options, quoted[0]), text)


def name_sources(hint: str, options: CommandOptions) -> str:
    """`hint` with what has set a value in place of the option that could, but for commands."""
    words = "|".join(map(re.escape, options.names))
    # What stands before a value is to be typed.
    pattern = rf"`[^`]*`|(?:{words})\b(?! (?:[A-Z]|http))" if words else r"(?!)"
    return re.sub(pattern, lambda found: options.names.get(found[0], found[0]), hint)


def as_typed(word: str) -> str:
    """The word as a shell needs it."""
    return subprocess.list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)
