"""The entries of spec files, which are YAML or CSV, and of domains that are given by name."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from dkimctl.errors import InputError, Problem, UsageError, naming
from dkimctl.models.registration import DomainSpec
from dkimctl.specs.entries import Entries
from dkimctl.specs.names import is_ordinary, parse_domain
from dkimctl.strict_yaml.document import NewParser
from dkimctl.strict_yaml.nodes import Node
from dkimctl.strict_yaml.problems import MAX_LISTED
from dkimctl.strict_yaml.source import read_bytes
from dkimctl.text.escaping import printable

_DOMAIN = "--domain"
_SUFFIXES = (".yaml", ".yml", ".json", ".txt", ".csv")


def read_specs(
    *paths: str, domains: Sequence[str] = (), defaults: Mapping[str, object] | None = None
) -> list[DomainSpec]:
    """The entries of spec files, of which `-` is standard input, and then those of `domains`.

    `defaults` are as for `load_specs`. Raises UsageError for a file that cannot be read, or a wrong
    domain, and InputError with every problem in the files.
    """
    _require_different(paths)
    entries = Entries()
    problems: list[Problem] = []
    for path in paths:
        data = read_bytes(path, hint_if_missing=_domain_hint(path))
        try:
            _load(entries, data, "<stdin>" if path == "-" else path, defaults)
        except InputError as error:
            problems += error.problems
        if len(problems) > MAX_LISTED:
            break
    if problems:
        raise InputError(problems)
    _add_domains(entries, domains, defaults)
    return entries.specs


def load_specs(
    data: bytes,
    name: str,
    *,
    defaults: Mapping[str, object] | None = None,
    new_parser: NewParser | None = None,
) -> list[DomainSpec]:
    """The entries of a spec file, which problems call `name`; it is CSV if that ends in .csv.

    `defaults` are the profile's fields, already checked. Those of the file take precedence over
    them, and the fields of an entry over both. Raises InputError with every problem found.
    """
    entries = Entries()
    _load(entries, data, name, defaults, new_parser)
    return entries.specs


def _load(
    entries: Entries,
    data: bytes,
    name: str,
    defaults: Mapping[str, object] | None,
    new_parser: NewParser | None = None,
) -> None:
    entries.begin(name)
    of_file: Mapping[str, object] = {}
    with _no_garbage_collection():
        if name.lower().endswith(".csv"):
            from dkimctl.specs.csv_reading import read_csv

            read_csv(data, name, entries)
        else:
            from dkimctl.specs.yaml_reading import read_yaml

            of_file = read_yaml(data, name, entries, new_parser)
        entries.end({**(defaults or {}), **of_file})


def _require_different(paths: Sequence[str]) -> None:
    if repeated := next((path for path, count in Counter(paths).items() if count > 1), None):
        raise UsageError(f"{printable(repeated)} is named twice", hint="name each file once")


def _domain_hint(path: str) -> str:
    """For a `path` that is rather a domain, and no file; else ""."""
    is_domain = is_ordinary(path) and not path.endswith(_SUFFIXES)
    return f"for the domain itself: `dkimctl register --domain {path}`" if is_domain else ""


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A load creates many objects and no garbage; looking for some takes a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _add_domains(
    entries: Entries, domains: Sequence[str], defaults: Mapping[str, object] | None
) -> None:
    with naming(_DOMAIN):
        names = [parse_domain(domain) for domain in domains]
        if repeated := next((name for name, count in Counter(names).items() if count > 1), None):
            raise UsageError(f"{repeated} is named twice", hint="name each domain once")
        entries.begin(_DOMAIN)
        word = _Word()
        for name in names:
            entries.require_room(word, word)
            entries.add(word, word, {"sign_domain": name})
    entries.end(defaults or {})


class _Word:
    """A word of the command line, which is in no line of a file."""

    line = column = -1

    @property
    def start_mark(self) -> _Word:
        return self

    def problem(self, _node: Node, message: str, hint: str) -> NoReturn:
        raise UsageError(message, hint=hint)

    stop = problem
