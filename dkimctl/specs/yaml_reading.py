"""A spec file in YAML: a list of entries, or a mapping with `domains:` and `defaults:`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dkimctl.errors import InputError, Problem
from dkimctl.specs.entries import Entries
from dkimctl.specs.fields import read_defaults, read_entry
from dkimctl.strict_yaml.document import Document, NewParser
from dkimctl.strict_yaml.nodes import Node

_KEYS = ("domains", "defaults")
_EXAMPLE = "write a list such as '- example.com', or [] for no domains"
_SYNTAX_ADVICE = {
    "while scanning an alias": (
        "a wildcard (*) cannot be a signing domain; and without quotes, YAML takes it for an alias",
        "list each signing domain, without the *.",
    )
}


def read_yaml(
    data: bytes, name: str, entries: Entries, new_parser: NewParser | None = None
) -> Mapping[str, Any]:
    """Add the entries of a file, which problems call `name`; returns its defaults.

    Raises InputError with every problem found.
    """
    reader = _Reader(entries)
    try:
        with Document(data, name, new_parser=new_parser, syntax_advice=_SYNTAX_ADVICE) as document:
            reader.read(document, name)
    except InputError:
        _refuse_other_file(data, name, reader)
        raise
    return reader.defaults


def _refuse_other_file(data: bytes, name: str, reader: _Reader) -> None:
    """If the file is no spec file at all, one problem says so, in place of all the others."""
    if reader.has_list:
        return
    from dkimctl.specs.other_files import advice

    if advised := advice(data, name, reader.keys):
        raise InputError([Problem(name, 1, 1, *advised)]) from None


class _Reader:
    """Reads entries and defaults: `defaults:` may come after the entries.

    `keys` are those of the file's mapping, if it is one; `has_list`: it is meant as a spec file.
    """

    _document: Document

    def __init__(self, entries: Entries) -> None:
        self.defaults: dict[str, Any] = {}
        self.keys: set[str] = set()
        self.has_list = False
        self._entries = entries

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
        document, entries = self._document, self._entries
        for item in document.items(node, what):
            self.has_list = True
            entries.require_room(document, item)
            entries.add(document, item, read_entry(document, item))
