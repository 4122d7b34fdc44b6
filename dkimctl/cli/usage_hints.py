"""What to type instead of what was typed, which is never quoted: only our own words are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from dkimctl.errors import UsageError
from dkimctl.text.durations import parse_duration

_LONGEST = 40  # characters: comparing takes quadratic time
_FILE = r".+\.(?:ya?ml|json|txt|csv)"
_DURATION = r"[0-9]{1,4}[smhdw]"
_EXAMPLE = r"\n  (dkimctl .*)"

# Words that other programs use, by what does it here.
_COMMANDS = {
    "register": "add create new import sync insert domain domains submit",
    "publish": "apply deploy plan push",
    "list": "ls",
    "show-dns": "dns export print records record zone get txt dump",
    "check-dns": "check test validate verify lookup dig query watch wait monitor",
    "init": "setup config configure start",
    "doctor": "diagnose diagnostics health debug",
    "login": "auth signin credentials credential account",
    "logout": "signout",
    "status": "whoami info",
    "profile list": "profiles accounts",
    "rotate": "renew rollover roll rotation keys key successor retire",
    "ledger forget": "delete remove rm forget unregister deregister purge",
    "serve": "server run daemon listen",
    "service client": "client clients user users",
    "register --sandbox FILE": "sandbox demo try",
    "--help": "help usage man",
    "--version": "version",
}
# Options of other programs, and what to do instead.
_SECRETS = "--secret --client-secret --password --token --access-token --api-key --key"
_OPTIONS = {
    ("register", "--key-len --keylen --key-length --bits --start-date --enable --default"): (
        "write it in the spec file, such as 'key_len: 2048' below defaults:"
    ),
    (
        "register",
        "--file --input --from-file",
    ): ("name the spec file by itself: `dkimctl register FILE`"),
    ("api", "--data --body --json --file -d"): (
        "write the body into a file, and add --input FILE (`-` is standard input)"
    ),
}
_FORMATS = ("--yaml", "--yml", "--xml", "--html", "--text", "--txt")
_CHOICES = {"bind": "zone", "rfc1035": "zone", "text": "table", "txt": "value", "tf": "terraform",
            "ndjson": "jsonl", "aws": "route53", "pdns": "powerdns"}  # fmt: skip


def for_option(typed: str, context: Any) -> str:
    """For an option that the command does not have; "" if none of ours resembles it."""
    name = typed.lower().replace("_", "-").partition("=")[0][:_LONGEST]
    known = {one: option for option in context.command.params for one in option.opts}
    if name in known:
        return f"did you mean {name}?"
    choices = _choices(known.get("--format"))
    if (word := name.removeprefix("--")) in choices:
        return f"write --format {word}"
    if choices and (word in _CHOICES or name in _FORMATS):
        return f"write --format and one of {', '.join(choices)}"
    if name in _SECRETS.split():
        return "no option takes a secret: `dkimctl login` asks for it, or reads --secret-stdin"
    for (command, words), hint in _OPTIONS.items():
        if context.command.name == command and name in words.split():
            return hint
    near = _near(name, (one for one in known if one.startswith("--")), cutoff=0.7)
    return f"did you mean {near}?" if near else ""


def for_command(typed: str, group: Any, path: str) -> str:
    """For a command that the group does not have."""
    word = typed.lower()[:_LONGEST]
    if near := _near(word.replace("_", "-"), group.commands, cutoff=0.65):
        return f"did you mean `{path} {near}`?"
    if path != "dkimctl":
        return f"the commands are {', '.join(group.commands)}"
    if word == "dkimctl":
        return "leave out the second dkimctl"
    if re.fullmatch(_FILE, word):
        return "to register the domains of a file: `dkimctl register FILE`"
    ours = next((command for command, words in _COMMANDS.items() if word in words.split()), None)
    return f"did you mean `dkimctl {ours}`?" if ours else ""


def for_value(typed: str, option: Any) -> str:
    """For a value that an option or argument does not take; "" if there is nothing to suggest."""
    name = option.opts[0] if option.param_type_name == "option" else ""
    if choices := _choices(option):
        word = typed.lower()[:_LONGEST]
        near = _CHOICES.get(word) or _near(word, choices, cutoff=0.5)
        return f"did you mean {name} {near}?".replace("  ", " ") if near in choices else ""
    if option.metavar == "SECONDS" and re.fullmatch(_DURATION, typed):
        try:
            return f"it is in seconds: write {name} {parse_duration(typed):.0f}"
        except UsageError:
            return ""
    has_default = isinstance(option.default, int)
    return f"write a number, such as {name} {option.default}" if has_default else ""


def for_no_value(error: Any) -> str:
    """For an option at the end of the line that takes a value."""
    needs_value = error.message.endswith("requires an argument.")
    return f"write its value after {error.option_name}" if needs_value else ""


def for_missing(context: Any) -> str:
    """For a missing argument: the first example of the command's help."""
    example = re.search(_EXAMPLE, context.command.epilog or "")
    takes_file = any(one.metavar == "FILE" for one in context.command.params if one.required)
    pipe = "; - is standard input" if takes_file else ""
    return f"for example, `{example[1]}`{pipe}" if example else ""


def for_extra(context: Any) -> str:
    """For an argument too many: what the command takes."""
    arguments = [one for one in context.command.params if one.param_type_name == "argument"]
    names = " ".join(str(one.metavar or one.name).upper() for one in arguments)
    return f"`{context.command_path}` takes only {names or 'options'}: see its --help"


def _choices(option: Any) -> list[str]:
    return [str(choice) for choice in getattr(getattr(option, "type", None), "choices", None) or ()]


def _near(word: str, known: Iterable[str], *, cutoff: float) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return near[0] if near else ""
