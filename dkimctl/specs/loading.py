"""A spec file: a list of entries, or a mapping with `domains:` and `defaults:`."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping
from typing import Any

from dkimctl.dkim import MAX_NAME
from dkimctl.errors import InputError, Problem
from dkimctl.models.registration import DomainSpec, RegistrationKey, key_of
from dkimctl.specs.fields import read_defaults, read_entry
from dkimctl.specs.names import is_a_label, is_ordinary, key_name_length
from dkimctl.strict_yaml.document import Document, NewParser
from dkimctl.strict_yaml.nodes import Node
from dkimctl.strict_yaml.source import read_bytes
from dkimctl.text.escaping import quoted

_KEYS = ("domains", "defaults")
_EXAMPLE = "write a list such as '- example.com', or [] for no domains"
_SYNTAX_ADVICE = {
    "while scanning an alias": (
        "a wildcard (*) cannot be a signing domain; and without quotes, YAML takes it for an alias",
        "list each signing domain, without the *.",
    )
}
_SUFFIXES = (".yaml", ".yml", ".json", ".txt", ".csv")
_MAX_ENTRIES = 250_000  # to check and plan them takes up to 8 s and 350 MB
_MAX_A_LABELS = 3_000_000  # characters; to check them takes 5 s


def read_specs(path: str, *, defaults: Mapping[str, object] | None = None) -> list[DomainSpec]:
    """Load the spec file at `path`, or standard input for `-`.

    Raises UsageError if it cannot be read, InputError if it is wrong.
    """
    name = "<stdin>" if path == "-" else path
    data = read_bytes(path, hint_if_missing=_domain_hint(path))
    return load_specs(data, name, defaults=defaults)


def load_specs(
    data: bytes,
    name: str,
    *,
    defaults: Mapping[str, object] | None = None,
    new_parser: NewParser | None = None,
) -> list[DomainSpec]:
    """The entries of a spec file, which problems call `name`.

    `defaults` are the profile's fields, already checked. Those of the file take precedence over
    them, and the fields of an entry over both. Raises InputError with every problem found.
    """
    reader = _Reader()
    try:
        with (
            _no_garbage_collection(),
            Document(data, name, new_parser=new_parser, syntax_advice=_SYNTAX_ADVICE) as document,
        ):
            reader.read(document, name)
    except InputError:
        _refuse_other_file(data, name, reader)
        raise
    _apply_defaults(reader.specs, {**(defaults or {}), **reader.defaults})
    return reader.specs


def _refuse_other_file(data: bytes, name: str, reader: _Reader) -> None:
    """If the file is no spec file at all, one problem says so, in place of all the others."""
    if reader.has_list:
        return
    from dkimctl.specs.other_files import advice

    if advised := advice(data, name, reader.keys):
        raise InputError([Problem(name, 1, 1, *advised)]) from None


def _domain_hint(path: str) -> str:
    """For a `path` that is rather a domain, and no file; else ""."""
    is_domain = is_ordinary(path) and not path.endswith(_SUFFIXES)
    command = f"echo '- {path}' | dkimctl register -"
    return f"for the domain itself: `{command}`, or write it into a file" if is_domain else ""


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


def _apply_defaults(specs: list[DomainSpec], defaults: Mapping[str, Any]) -> None:
    if not defaults:
        return
    template = DomainSpec("", **defaults)
    for position, spec in enumerate(specs):  # in place: a second list takes as much memory
        specs[position] = DomainSpec._make(
            [b if a is None else a for a, b in zip(spec, template, strict=True)]
        )


class _Reader:
    """Collects entries and defaults: `defaults:` may come after the entries.

    `keys` are those of the file's mapping, if it is one; `has_list`: it is meant as a spec file.
    """

    _document: Document

    def __init__(self) -> None:
        self.specs: list[DomainSpec] = []
        self.defaults: dict[str, Any] = {}
        self.keys: set[str] = set()
        self.has_list = False
        self._lines: list[int] = []  # of `specs`
        self._a_labels = 0  # characters
        # Positions in `specs`: of each domain's first entry, and of all where there are several.
        self._first: dict[str, int] = {}
        self._repeated: dict[str, dict[RegistrationKey, int]] = {}

    def read(self, document: Document, name: str) -> None:
        self._document = document
        root = document.root()
        if root is None:
            raise InputError([Problem(name, 1, 1, "the file is empty", _EXAMPLE)])
        if document.is_mapping(root):
            self._read_mapping(root)
        else:
            self._read_entries(root, "a spec file")

    def _read_mapping(self, root: Node) -> None:
        for key, value in self._document.pairs(root, "a spec file"):
            self.keys.add(key.value)
            if key.value == "domains":
                self.has_list = True
                self._read_entries(value, "domains")
            elif key.value == "defaults":
                self.defaults = read_defaults(self._document, value)
            else:
                self._document.unknown_key(key, "a spec file", _KEYS)
        if "domains" not in self.keys:
            self._document.problem(root, "a spec file needs a list", "write it below domains:")

    def _read_entries(self, node: Node, what: str) -> None:
        for count, item in enumerate(self._document.items(node, what)):
            self.has_list = True
            if count == _MAX_ENTRIES:
                message = f"more than {_MAX_ENTRIES:,} entries"
                self._document.stop(item, message, "split the file into several")
            fields = read_entry(self._document, item)
            if "sign_domain" not in fields:
                message = "an entry needs a sign_domain"
                self._document.problem(item, message, "add the signing domain")
            elif None not in (fields["sign_domain"], fields.get("selector", "")):
                spec = DomainSpec(**fields)
                if spec.replaces is not None:
                    self._check_replaces(item, spec)
                self._add(item, spec)

    def _add(self, node: Node, spec: DomainSpec) -> None:
        octets = key_name_length(spec.sign_domain, spec.selector)
        if octets > MAX_NAME:
            message = f"SELECTOR._domainkey.DOMAIN has {octets} octets, more than {MAX_NAME}"
            hint = f"a DNS name has at most {MAX_NAME} octets: use a shorter selector or domain"
            self._document.problem(node, message, hint)
        if "xn--" in spec.sign_domain:
            self._count_a_labels(node, spec.sign_domain)
        position = len(self.specs)
        self.specs.append(spec)
        self._lines.append(node.start_mark.line + 1)
        if self._first.setdefault(spec.sign_domain, position) != position:
            self._check_repeated(node, position)

    def _count_a_labels(self, node: Node, domain: str) -> None:
        self._a_labels += sum(map(len, filter(is_a_label, domain.split("."))))
        if self._a_labels > _MAX_A_LABELS:
            message = f"more than {_MAX_A_LABELS:,} characters of internationalized labels (xn--)"
            self._document.stop(node, message, "split the file into several")

    def _check_replaces(self, node: Node, spec: DomainSpec) -> None:
        if spec.selector is None:
            message = "an entry with replaces: needs a selector of its own"
            self._document.problem(node, message, "add the selector of the new key")
        elif key_of(spec.sign_domain, spec.replaces) == spec.key:
            message = f"the selector {quoted(spec.selector)} cannot replace itself"
            self._document.problem(node, message, "write the selector of the old key at replaces:")

    def _check_repeated(self, node: Node, position: int) -> None:
        """Report an entry that repeats an earlier one, or makes it ambiguous."""
        spec = self.specs[position]
        first = self._first[spec.sign_domain]
        positions = self._repeated.setdefault(spec.sign_domain, {self.specs[first].key: first})
        if spec.key in positions:
            self._report_repeated(node, spec, self._lines[positions[spec.key]])
            return
        other = first if spec.selector is None else positions.get(key_of(spec.sign_domain, None))
        if other is not None:
            message = (
                f"{quoted(spec.sign_domain)} has entries with and without a selector "
                f"(line {self._lines[other]})"
            )
            self._document.problem(node, message, "give every entry of the domain a selector")
        positions[spec.key] = position

    def _report_repeated(self, node: Node, spec: DomainSpec, line: int) -> None:
        name, hint = quoted(spec.sign_domain), "remove one of the two"
        if spec.selector:
            name += f" with selector {quoted(spec.selector)}"
        else:
            hint += ", or give each its own selector"
        self._document.problem(node, f"{name} is already on line {line}", hint)
