"""The targets that the config file has for a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dkimctl.credentials.sources import ReferencedSecrets
from dkimctl.errors import DkimctlError
from dkimctl.publishing.changes import Applied, Change, NameState
from dkimctl.publishing.targets import Access, ConfiguredTarget, Target
from dkimctl.settings.config import Config, DnsTarget
from dkimctl.settings.values import parse_reference
from dkimctl.text.dns_names import is_glob

_RFC2136 = "rfc2136"


def open_targets(
    config: Config, profile: str, secrets: ReferencedSecrets
) -> list[ConfiguredTarget]:
    """The targets that this profile may use, in the order of the config file.

    Nothing is read or connected before a target is used; then a key or secret that is missing is a
    UsageError or CredentialsError.
    """
    return [
        ConfiguredTarget(entry.zones, _target(entry, secrets))
        for entry in config.dns
        if entry.is_for(profile)
    ]


def _target(entry: DnsTarget, secrets: ReferencedSecrets) -> Target:
    if entry.provider == _RFC2136:
        return DeferredTarget(entry.server, entry.ttl, lambda: _rfc2136(entry))
    return DeferredTarget(entry.class_name, entry.ttl, lambda: _octodns(entry, secrets))


def _rfc2136(entry: DnsTarget) -> Target:
    from dkimctl.publishing.rfc2136 import Rfc2136Target
    from dkimctl.publishing.tsig_key_file import read_tsig_key
    from dkimctl.text.addresses import parse_server

    key = read_tsig_key(entry.key_file) if entry.key_file else None
    return Rfc2136Target(entry.server, parse_server(entry.server), entry.ttl, key)


def _octodns(entry: DnsTarget, secrets: ReferencedSecrets) -> Target:
    from dkimctl.publishing.octodns import OctodnsTarget

    settings = {key: _resolved(value, secrets) for key, value in entry.settings.items()}
    names = [zone for zone in entry.zones if not is_glob(zone)]
    return OctodnsTarget(entry.class_name, settings, entry.ttl, zones=names)


def _resolved(value: object, secrets: ReferencedSecrets) -> object:
    """The value of a setting, with a Secret in place of each reference."""
    if isinstance(value, Mapping):
        return {key: _resolved(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(item, secrets) for item in value]
    reference = parse_reference(value) if isinstance(value, str) else None
    return secrets.read(reference) if reference else value


class DeferredTarget:
    """A target that `open_target` makes when it is first used."""

    def __init__(self, label: str, ttl: int, open_target: Callable[[], Target]) -> None:
        self.label = label
        self.ttl = ttl
        self._open_target = open_target
        self._target: Target | None = None

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """See Target. All but `apply` raise DkimctlError also if the target cannot be made."""
        return self._opened().find_zones(names)

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        return self._opened().read(zone, names)

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        try:
            target = self._opened()
        except DkimctlError as error:
            yield from (Applied(change, error) for change in changes)
            return
        yield from target.apply(zone, changes)

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        return self._opened().check_access(zone, names)

    def _opened(self) -> Target:
        if self._target is None:
            self._target = self._open_target()
        return self._target
