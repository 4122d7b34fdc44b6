"""Reads the config file strictly, and reports all its problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dkimctl.errors import InputError, UsageError
from dkimctl.settings.dns_targets import DnsTarget
from dkimctl.settings.notices import NoticeSettings, read_notices
from dkimctl.settings.reading import (
    LOGIN_HINT,
    on_text,
    read_fields,
    report_unknown,
    scalar_readers,
)
from dkimctl.settings.rotation import RotationSettings, read_rotation
from dkimctl.settings.values import CHECKS, SANDBOX, SANDBOX_FIXED, profile_name
from dkimctl.system.ownership import path_fault, refuse
from dkimctl.text.secret_references import variables_in

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node

    ReadDefaults = Callable[[Document, Node], Mapping[str, object]]


class Config(NamedTuple):
    """A valid config file. Each profile has only the keys that the file sets."""

    default_profile: str | None = None
    profiles: Mapping[str, Mapping[str, Any]] = {}
    dns: tuple[DnsTarget, ...] = ()
    rotation: RotationSettings = RotationSettings()
    notify: NoticeSettings = NoticeSettings()

    def secret_variables(self) -> set[str]:
        """The environment variables that it names as secrets (env/NAME)."""
        texts = [self.notify.webhook, *(target.settings for target in self.dns)]
        return set(variables_in(texts))


def load_config(
    path: Path,
    *,
    required: bool,
    read_defaults: ReadDefaults,
    parse_zone: Callable[[str], str],
) -> Config:
    """Read the config file; a missing one is an empty Config unless it is `required`.

    A file that is `required` was named by the user, and may be anyone's. `read_defaults` reads the
    `defaults` of a profile, which are spec fields; `parse_zone` checks the name of a zone, and
    returns it in lower case, as A-labels. Raises UsageError if the file cannot be read, or
    other users can change it; InputError with all its problems if it is invalid.
    """
    if not required:
        if _is_missing(path):
            return Config()
        _require_safe(path)
    try:
        return _read_config(path, read_defaults, parse_zone)
    except InputError as error:
        # The frames of the traceback hold the text, which may contain a secret.
        raise error.with_traceback(None) from None


def _read_config(
    path: Path, read_defaults: ReadDefaults, parse_zone: Callable[[str], str]
) -> Config:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.source import MAX_CONFIG_BYTES, read_bytes

    data = read_bytes(str(path), largest=MAX_CONFIG_BYTES)
    with Document(data, str(path)) as document:
        reader = _Reader(document, path.parent, read_defaults, parse_zone)
        root = document.root()
        return Config() if root is None else reader.read(root)


class _Reader:
    def __init__(
        self,
        document: Document,
        directory: Path,
        read_defaults: ReadDefaults,
        parse_zone: Callable[[str], str],
    ) -> None:
        self._document = document
        self._directory = directory
        self._read_defaults = read_defaults
        self._parse_zone = parse_zone

    def read(self, root: Node) -> Config:
        document = self._document
        readers: dict[str, Callable[[Node], object]] = {
            **scalar_readers(document, {"default_profile": profile_name}),
            "profiles": self._read_profiles,
            "dns": self._read_dns,
            "rotation": lambda node: read_rotation(document, node),
            "notify": lambda node: read_notices(document, node),
        }
        values, _ = read_fields(document, root, "the config file", readers, secret_hint=LOGIN_HINT)
        return Config(**values)

    def _read_dns(self, node: Node) -> tuple[DnsTarget, ...]:
        from dkimctl.settings.dns_reading import read_dns_targets

        return read_dns_targets(
            self._document, node, directory=self._directory, parse_zone=self._parse_zone
        )

    def _read_profiles(self, node: Node) -> dict[str, dict[str, Any]]:
        profiles = {}
        for key, value in self._document.pairs(node, "profiles"):
            name = self._document.value(key, "profiles", on_text(profile_name))
            if name is not None:
                profiles[name] = self._read_profile(value, name)
        return profiles

    def _read_profile(self, node: Node, name: str) -> dict[str, Any]:
        profile: dict[str, Any] = {}
        for key, value in self._document.pairs(node, f"the profile {name}"):
            if name == SANDBOX and key.value in SANDBOX_FIXED:
                hint = "remove it, or use another profile name"
                self._document.problem(key, f"{key.value} of the sandbox is fixed", hint)
            elif key.value == "defaults":
                profile["defaults"] = self._read_defaults(self._document, value)
            elif check := CHECKS.get(key.value):
                profile[key.value] = self._document.value(value, key.value, on_text(check))
            else:
                known = (*CHECKS, "defaults")
                report_unknown(self._document, key, "a profile", known, LOGIN_HINT)
        return profile


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
