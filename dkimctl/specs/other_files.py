"""What to say of a file that is no spec file at all, such as a plain list of domains."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import PurePath

from dkimctl.text.escaping import printable
from dkimctl.text.file_kinds import (
    FileKind,
    guess_kind,
    has_mark,
    header,
    is_domain,
)

_LIST = "write a list such as '- example.com'"
_SAVED = "`dkimctl ledger import` and --from read it; a spec file is a list such as '- example.com'"
_HINTS = {
    FileKind.BINARY: "save it as text in UTF-8, with one '- example.com' a line",
    FileKind.UTF_16: "save it as UTF-8; in PowerShell, with `Out-File -Encoding utf8`",
    FileKind.HTML: f"download the file itself, or {_LIST}",
    FileKind.SAVED: _SAVED,
    FileKind.SAVED_LINES: _SAVED,
    FileKind.ZONE: f"{_LIST}, of the domains that appear in From: addresses",
    FileKind.ADDRESSES: "write only the part after each @, with '- ' before it",
    FileKind.URLS: "write only the domain of each, with '- ' before it",
    FileKind.DOMAINS_IN_A_LINE: "write each domain on a line of its own, with '- ' before it",
    FileKind.NO_SPACE: "begin each item with a hyphen and a space, as in '- example.com'",
}
_HEADER = "begin the file with a line such as 'sign_domain,selector'"
_HINTS_ON_TABLE = {
    FileKind.BINARY: "save it as CSV in UTF-8",
    FileKind.UTF_16: "save it as CSV in UTF-8",
    FileKind.HTML: "download the file itself",
    FileKind.SAVED: "`dkimctl ledger import` and --from read it",
    FileKind.SAVED_LINES: "`dkimctl ledger import` and --from read --format json",
    FileKind.SPECS: "give it a name that ends in .yaml",
    FileKind.DOMAINS: "add a line above the first that says sign_domain",
}
_MAY_BE_YAML = (FileKind.BINARY, FileKind.UTF_16, FileKind.NO_SPACE)
_UNSAFE = "FILE"  # in place of a name that a shell or a terminal could misread


def advice(data: bytes, name: str, keys: Collection[str] = ()) -> tuple[str, str] | None:
    """What the file seems to be, and what to do; None if it may be meant as a spec file.

    `keys` are those of its mapping, if it is one. `<stdin>` is a `name` as well.
    """
    if "sign_domain" in keys and not _has_several_lines(data):
        return "an entry that is in no list", "begin it with '- ', and indent its other lines by 2"
    if "profiles" in keys or "default_profile" in keys:
        return "the file is a config file, not a spec file", f"give it to --config; here, {_LIST}"
    if keys and all(map(is_domain, keys)):
        return (
            "the domains are the keys of a mapping, not a list",
            "write each as '- sign_domain: example.com', and its other fields below that",
        )
    kind = guess_kind(data)
    if keys and kind not in (FileKind.SAVED, FileKind.SAVED_LINES, FileKind.JSON_LINES):
        return None
    if kind is None or kind in (FileKind.SPECS, FileKind.EMPTY):
        return None
    what = kind.value if kind in _MAY_BE_YAML else f"{kind.value}, not YAML"
    return f"the file {what}", _HINTS.get(kind) or _conversion(kind, data, name)


def advice_on_table(data: bytes) -> tuple[str, str] | None:
    """What a file in CSV seems to be instead, or lacks, and what to do; None: nothing is known."""
    kind = guess_kind(data)
    if kind is FileKind.CSV and any(map(is_domain, header(data)[1])):
        return "the file has no header", _HEADER
    if kind is None or kind in (FileKind.CSV, FileKind.EMPTY):
        return None
    return f"the file {kind.value}, not a table (CSV)", _HINTS_ON_TABLE.get(kind, _HEADER)


def _has_several_lines(data: bytes) -> bool:
    return guess_kind(data) in (FileKind.JSON_LINES, FileKind.SAVED_LINES)


def _conversion(kind: FileKind, data: bytes, name: str) -> str:
    """The command that makes a spec file of it, where one does, after what it does."""
    is_safe = shlex.quote(name) == name == printable(name) and not name.startswith("-")
    file = name if is_safe else _UNSAFE
    target = "specs.yaml" if PurePath(name).name == "domains.yaml" else "domains.yaml"
    match kind:
        case FileKind.DOMAINS:
            what, command = "begin each line with '- '", "sed 's/^/- /'"
        case FileKind.JSON_LINES:
            what, command = "put the objects into a list, [{...}, {...}]", "jq -s ."
        case _:
            where = "write it to a file with" if name == "<stdin>" else "give it"
            return f"{where} a name that ends in .csv, and a header such as sign_domain,selector"
    if name == "<stdin>":
        return f"{what}, such as with `{_reading(command, '', data)}`"
    return f"{what}: `{_reading(command, f' {file}', data)} > {target}`"


def _reading(command: str, file: str, data: bytes) -> str:
    return f"tail -c +4{file} | {command}" if has_mark(data) else f"{command}{file}"
