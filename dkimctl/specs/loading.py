"""A spec file: a list of entries, or a mapping with `domains:` and `defaults:`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dkimctl.errors import InputError, Problem
from dkimctl.models.registration import DomainSpec
from dkimctl.specs.fields import ENTRY, read_defaults, read_fields
from dkimctl.specs.names import MAX_NAME, key_name_length
from dkimctl.specs.repetitions import Repetitions
from dkimctl.specs.usual import take_usual
from dkimctl.strict_yaml.document import Document
from dkimctl.strict_yaml.nodes import MappingNode, Node
from dkimctl.strict_yaml.source import decode, read_bytes

_KEYS = ("domains", "defaults")
_EXAMPLE = "write a list such as '- example.com', or [] for no domains"


def read_specs(path: str, *, defaults: Mapping[str, object] | None = None) -> list[DomainSpec]:
    """Loads the spec file at `path`, or standard input for `-`.

    Raises UsageError if it cannot be read, InputError if it is wrong.
    """
    name = "<stdin>" if path == "-" else path
    return load_specs(read_bytes(path), name, defaults=defaults)


def load_specs(
    data: bytes, name: str, *, defaults: Mapping[str, object] | None = None
) -> list[DomainSpec]:
    """The entries of a spec file; `name` stands for the file in problems.

    `defaults` are the profile's fields, already checked; those of the file stand above
    them, and those of an entry above both. Raises InputError with every problem found.
    """
    text = decode(data, name)
    rest, usual = take_usual(text)
    try:
        reader = _read(rest, name)
    except InputError:
        if not usual:
            raise
        reader, usual = _read(text, name), []  # which tells the right places
    shared = {**(defaults or {}), **reader.defaults}
    return [DomainSpec(**(shared | entry)) for entry in usual or reader.entries]


def _read(text: str, name: str) -> _Reader:
    with Document(text, name) as document:
        reader = _Reader(document)
        root = document.root()
        if root is None:
            raise InputError([Problem(name, 1, 1, "there is nothing in the file", _EXAMPLE)])
        reader.read(root)
    return reader


class _Reader:
    """Collects entries and defaults: `defaults:` may follow the entries it is for."""

    def __init__(self, document: Document) -> None:
        self.entries: list[dict[str, Any]] = []
        self.defaults: dict[str, Any] = {}
        self._document = document
        self._repetitions = Repetitions(document)

    def read(self, root: Node) -> None:
        if isinstance(root, MappingNode):
            self._read_mapping(root)
        else:
            self._read_entries(root, "a spec file")

    def _read_mapping(self, root: Node) -> None:
        found = set()
        for key, value in self._document.pairs(root, "a spec file"):
            found.add(key.value)
            if key.value == "domains":
                self._read_entries(value, "domains")
            elif key.value == "defaults":
                self.defaults = read_defaults(self._document, value)
            else:
                self._document.unknown_key(key, "a spec file", _KEYS)
        if "domains" not in found:
            self._document.problem(root, "a spec file has no list", "write it below domains:")

    def _read_entries(self, node: Node, what: str) -> None:
        for item in self._document.items(node, what):
            entry = self._entry(item)
            self._check_name(item, entry)
            self.entries.append(entry)

    def _entry(self, node: Node) -> dict[str, Any]:
        if isinstance(node, MappingNode):
            entry = read_fields(self._document, node, "an entry", ENTRY)
        else:
            domain = self._document.value(node, "an entry", ENTRY["sign_domain"])
            entry = {"sign_domain": domain}
        return entry

    def _check_name(self, node: Node, entry: dict[str, Any]) -> None:
        if "sign_domain" not in entry:
            self._document.problem(node, "an entry has no sign_domain", "name the signing domain")
        elif None not in (entry["sign_domain"], entry.get("selector", "")):
            self._compare(node, entry["sign_domain"], entry.get("selector"))

    def _compare(self, node: Node, domain: str, selector: str | None) -> None:
        octets = key_name_length(domain, selector)
        if octets > MAX_NAME:
            message = f"SELECTOR._domainkey.DOMAIN has {octets} octets, over {MAX_NAME}"
            self._document.problem(node, message, "DNS holds no longer name: use a shorter one")
        self._repetitions.check(node, domain, selector)
