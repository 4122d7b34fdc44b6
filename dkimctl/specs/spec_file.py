"""The entries of spec files, in YAML or CSV, and those of domains given by name."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from dkimctl.errors import InputError, Problem, UsageError, naming
from dkimctl.input_files import FileKind, guess_kind, read_bytes
from dkimctl.models.registration import DomainSpec
from dkimctl.specs.entries import Entries, read_defaults, read_entry
from dkimctl.specs.names import is_ordinary, parse_domain
from dkimctl.strict_yaml import MAX_LISTED, Document, Mark, Node, Place, Problems
from dkimctl.text.escaping import printable

_DOMAIN = "--domain"
_SUFFIXES = (".yaml", ".yml", ".json", ".txt", ".csv")
_EXAMPLE = "write a list such as '- example.com', or [] for no domains"
_SYNTAX_ADVICE = {
    "while scanning an alias": (
        "a wildcard (*) cannot be a signing domain; and without quotes, YAML takes it for an alias",
        "list each signing domain, without the *.",
    )
}


def read_specs(
    *paths: str,
    domains: Sequence[str] = (),
    defaults: Mapping[str, object] | None = None,
    warn: Callable[[str], object] = lambda _sentence: None,
) -> list[DomainSpec]:
    """The entries of spec files, of which `-` is standard input, and then those of `domains`.

    `defaults` are the profile's fields, already checked. Those of a file take precedence over them,
    and the fields of an entry over both. `warn` gets a sentence about what is left out. Raises
    UsageError for a file that cannot be read, or a wrong domain, and InputError with every problem
    in the files.
    """
    if repeated := _repeated(paths):
        raise UsageError(f"{printable(repeated)} is named twice", hint="name each file once")
    entries = Entries()
    problems: list[Problem] = []
    for path in paths:
        is_domain = is_ordinary(path) and not path.endswith(_SUFFIXES)
        hint = f"for the domain itself: `dkimctl register --domain {path}`" if is_domain else ""
        data = read_bytes(path, hint_if_missing=hint)
        try:
            add_entries(entries, data, "<stdin>" if path == "-" else path, defaults, warn)
        except InputError as error:
            problems += error.problems
        if len(problems) > MAX_LISTED:
            break
    if problems:
        raise InputError(problems)
    with naming(_DOMAIN):
        names = [parse_domain(domain) for domain in domains]
        if repeated := _repeated(names):
            raise UsageError(f"{repeated} is named twice", hint="name each domain once")
        entries.begin(_DOMAIN)
        words, nowhere = _Words(_DOMAIN), Place(-1, -1)
        for name in names:
            entries.require_room(words, nowhere)
            entries.add(words, nowhere, {"sign_domain": name})
    entries.end(defaults or {})
    return entries.specs


def add_entries(
    entries: Entries,
    data: bytes,
    name: str,
    defaults: Mapping[str, object] | None,
    warn: Callable[[str], object],
) -> None:
    """Add those of a file, in CSV or YAML, which problems call `name`. Raises InputError."""
    entries.begin(name)
    of_file: Mapping[str, object] = {}
    # A load creates many objects and no garbage; looking for some takes a tenth of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        if name.lower().endswith(".csv"):
            from dkimctl.specs.table import read_table

            read_table(data, name, entries, warn)
        else:
            of_file = _read_yaml(data, name, entries)
        entries.end({**(defaults or {}), **of_file})
    finally:
        if was_enabled:
            gc.enable()


def _read_yaml(data: bytes, name: str, entries: Entries) -> Mapping[str, Any]:
    """Add the entries of a YAML file: a list, or `domains:`; returns its `defaults:`."""
    defaults: dict[str, Any] = {}
    has_list = False  # it is meant as a spec file

    def read_list(node: Node, what: str) -> None:
        nonlocal has_list
        for item in document.items(node, what):
            has_list = True
            entries.require_room(document, item)
            entries.add(document, item, read_entry(document, item))

    try:
        with Document(data, name, syntax_advice=_SYNTAX_ADVICE) as document:
            root = document.root()
            if root is None:
                raise InputError([Problem(name, 1, 1, "the file is empty", _EXAMPLE)])
            if not document.is_mapping(root):
                read_list(root, "a spec file")
                return defaults
            keys = set()
            for key, value in document.pairs(root, "a spec file"):
                keys.add(key.value)
                if key.value == "domains":
                    has_list = True
                    read_list(value, "domains")
                elif key.value == "defaults":  # which may come after the entries
                    defaults = read_defaults(document, value)
                else:
                    document.unknown_key(key, "a spec file", ("domains", "defaults"))
            if "domains" not in keys:
                document.problem(root, "a spec file needs a list", "write it below domains:")
    except InputError:
        # If it is another file altogether, one problem says so, in place of all the others.
        kind = None if has_list else guess_kind(data)
        if kind and kind not in (FileKind.SPECS, FileKind.EMPTY):
            message = f"the file {kind.what}, not a spec file"
            raise InputError([Problem(name, 1, 1, message, kind.hint)]) from None
        raise
    return defaults


def _repeated(words: Iterable[str]) -> str | None:
    return next((word for word, count in Counter(words).items() if count > 1), None)


class _Words(Problems):
    """Those of the command line, of which the first is an error."""

    def add(self, _mark: Mark, message: str, hint: str) -> NoReturn:
        raise UsageError(message, hint=hint)
