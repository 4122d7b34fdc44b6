"""The config file: strict, and every problem in one run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dkimctl.errors import InputError
from dkimctl.settings.values import CHECKS, SANDBOX, SANDBOX_FIXED, Check, profile_name
from dkimctl.text.wording import shown

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node, Scalar

    ReadDefaults = Callable[[Document, Node], Mapping[str, object]]

_KEYS = ("default_profile", "profiles")
_CONFIDENTIAL = "secret|passw|token|api_?key|private_?key"


class Config(NamedTuple):
    """A config file's content, checked. Each profile holds only the keys it states."""

    default_profile: str | None = None
    profiles: Mapping[str, Mapping[str, Any]] = {}


def load_config(path: Path, *, required: bool, read_defaults: ReadDefaults) -> Config:
    """Reads the config file; a missing one is an empty Config unless it is `required`.

    `read_defaults` reads a profile's `defaults`, which are spec fields. Raises UsageError if
    the file cannot be read, InputError with every problem if it is wrong.
    """
    if not required and _is_missing(path):
        return Config()
    try:
        return _read_config(path, read_defaults)
    except InputError as error:
        # What it leads through holds the text, and that perhaps a secret.
        raise error.with_traceback(None) from None


def _read_config(path: Path, read_defaults: ReadDefaults) -> Config:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.source import decode, read_bytes

    with Document(decode(read_bytes(str(path)), str(path)), str(path)) as document:
        reader = _Reader(document, read_defaults)
        root = document.root()
        if root is not None:
            reader.read(root)
    return Config(reader.default_profile, reader.profiles)


class _Reader:
    def __init__(self, document: Document, read_defaults: ReadDefaults) -> None:
        self.default_profile: str | None = None
        self.profiles: dict[str, dict[str, Any]] = {}
        self._document = document
        self._read_defaults = read_defaults

    def read(self, root: Node) -> None:
        for key, value in self._document.pairs(root, "the config file"):
            if key.value == "default_profile":
                self.default_profile = self._document.value(value, key.value, _name)
            elif key.value == "profiles":
                self._read_profiles(value)
            else:
                self._refuse_key(key, "the config file", _KEYS)

    def _read_profiles(self, node: Node) -> None:
        for key, value in self._document.pairs(node, "profiles"):
            name = self._document.value(key, "profiles", _name)
            if name is not None:
                self.profiles[name] = self._read_profile(value, name)

    def _read_profile(self, node: Node, name: str) -> dict[str, Any]:
        profile: dict[str, Any] = {}
        for key, value in self._document.pairs(node, f"the profile {name}"):
            if name == SANDBOX and key.value in SANDBOX_FIXED:
                hint = "remove it, or use another profile name"
                self._document.problem(key, f"{key.value} of the sandbox is fixed", hint)
            elif key.value == "defaults":
                profile["defaults"] = self._read_defaults(self._document, value)
            elif check := CHECKS.get(key.value):
                profile[key.value] = self._document.value(value, key.value, _on_text(check))
            else:
                self._refuse_key(key, "a profile", (*CHECKS, "defaults"))
        return profile

    def _refuse_key(self, key: Scalar, what: str, known: tuple[str, ...]) -> None:
        if re.search(_CONFIDENTIAL, key.value, re.IGNORECASE):
            hint = "remove it: `dkimctl login` keeps secrets, or set DKIMCTL_CLIENT_SECRET"
            self._document.problem(key, f"{shown(key.value)}: no secret belongs in this file", hint)
        else:
            self._document.unknown_key(key, what, known)


def _is_missing(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # it may be there: reading it will tell what is wrong
        return False


def _name(scalar: Scalar) -> str:
    return profile_name(scalar.value)


def _on_text(check: Check) -> Callable[[Scalar], object]:
    return lambda scalar: check(scalar.value)
