"""Reads the config file strictly, and reports all its problems at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dkimctl.errors import InputError, UsageError
from dkimctl.settings.values import CHECKS, SANDBOX, SANDBOX_FIXED, Check, profile_name
from dkimctl.system.ownership import path_fault, refuse
from dkimctl.text.escaping import quoted

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node, Scalar

    ReadDefaults = Callable[[Document, Node], Mapping[str, object]]

_KEYS = ("default_profile", "profiles")
_SECRET_KEY = "secret|passw|token|api_?key|private_?key"  # noqa: S105 - a pattern


class Config(NamedTuple):
    """A valid config file. Each profile has only the keys that the file sets."""

    default_profile: str | None = None
    profiles: Mapping[str, Mapping[str, Any]] = {}


def load_config(path: Path, *, required: bool, read_defaults: ReadDefaults) -> Config:
    """Read the config file; a missing one is an empty Config unless it is `required`.

    A file that is `required` was named by the user, and may be anyone's. `read_defaults` reads the
    `defaults` of a profile, which are spec fields. Raises UsageError if the file cannot be read, or
    other users can change it; InputError with all its problems if it is invalid.
    """
    if not required:
        if _is_missing(path):
            return Config()
        _require_safe(path)
    try:
        return _read_config(path, read_defaults)
    except InputError as error:
        # The frames of the traceback hold the text, which may contain a secret.
        raise error.with_traceback(None) from None


def _read_config(path: Path, read_defaults: ReadDefaults) -> Config:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.source import MAX_CONFIG_BYTES, read_bytes

    data = read_bytes(str(path), largest=MAX_CONFIG_BYTES)
    with Document(data, str(path)) as document:
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
                self._report_unknown(key, "the config file", _KEYS)

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
                self._report_unknown(key, "a profile", (*CHECKS, "defaults"))
        return profile

    def _report_unknown(self, key: Scalar, what: str, known: tuple[str, ...]) -> None:
        if re.search(_SECRET_KEY, key.value, re.IGNORECASE):
            message = f"{quoted(key.value)}: secrets are not allowed in this file"
            hint = "remove it and run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET"
            self._document.problem(key, message, hint)
        else:
            self._document.unknown_key(key, what, known)


def _is_missing(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # reading it will report the reason
        return False


def _require_safe(path: Path) -> None:
    """Raise UsageError if other users can change the file, which says where secrets are sent."""
    with suppress(OSError):  # reading it will report the reason
        hint = "name the file in --config or DKIMCTL_CONFIG if you trust it"
        refuse(path_fault(path), UsageError, hint=hint)


def _name(text: str, _is_plain: bool) -> str:
    return profile_name(text)


def _on_text(check: Check) -> Callable[[str, bool], object]:
    return lambda text, _is_plain: check(text)
