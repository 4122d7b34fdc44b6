"""The targets that the config file has for a profile, and the access to their zones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from dkimctl.addresses import parse_server
from dkimctl.credentials.sources import ReferencedSecrets
from dkimctl.errors import DkimctlError
from dkimctl.models import Registration
from dkimctl.names import is_glob
from dkimctl.publishing.plan import (
    Access,
    Applied,
    Change,
    ConfiguredTarget,
    NameState,
    Target,
    TargetZone,
    by_target_zone,
    find_target_zones,
)
from dkimctl.publishing.tsig_key import read_tsig_key
from dkimctl.settings.config import Config, DnsTarget
from dkimctl.settings.values import parse_reference
from dkimctl.threads import work_in_parallel

_MADE_UP = "dkimctl-access-check._domainkey"  # a name to try in a zone without registrations


def open_targets(
    config: Config, profile: str, secrets: ReferencedSecrets
) -> list[ConfiguredTarget]:
    """The targets of this profile, in the order of the config file, each opened when it is used."""

    def rfc2136(entry: DnsTarget) -> Target:
        from dkimctl.publishing.rfc2136 import Rfc2136Target

        key = read_tsig_key(entry.key_file) if entry.key_file else None
        return Rfc2136Target(entry.server, parse_server(entry.server), entry.ttl, key)

    def octodns(entry: DnsTarget) -> Target:
        from dkimctl.publishing.octodns import OctodnsTarget

        def resolved(value: object) -> object:
            """The value of a setting, with a Secret in place of each reference."""
            if isinstance(value, Mapping):
                return {key: resolved(inner) for key, inner in value.items()}
            if isinstance(value, list):
                return [resolved(item) for item in value]
            reference = parse_reference(value) if isinstance(value, str) else None
            return secrets.read(reference) if reference else value

        settings = {key: resolved(value) for key, value in entry.settings.items()}
        names = [zone for zone in entry.zones if not is_glob(zone)]
        return OctodnsTarget(entry.class_name, settings, entry.ttl, zones=names)

    def target(entry: DnsTarget) -> Target:
        if entry.provider == "rfc2136":
            return DeferredTarget(entry.server, entry.ttl, lambda: rfc2136(entry))
        return DeferredTarget(entry.class_name, entry.ttl, lambda: octodns(entry))

    entries = (entry for entry in config.dns if entry.is_for(profile))
    return [ConfiguredTarget(entry.zones, target(entry)) for entry in entries]


class DeferredTarget:
    """A target that `open_target` makes when it is first used, which may raise DkimctlError."""

    def __init__(self, label: str, ttl: int, open_target: Callable[[], Target]) -> None:
        self.label = label
        self.ttl = ttl
        self._open_target = open_target

    @cached_property
    def _target(self) -> Target:
        return self._open_target()

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        return self._target.find_zones(names)

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        return self._target.read(zone, names)

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        return self._target.apply(zone, changes)  # it has been read before, so it is open

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        return self._target.check_access(zone, names)


class ZoneAccess(NamedTuple):
    """The access to a zone with this number of registered names; `zone` is "" if not known."""

    target: str
    zone: str
    names: int
    access: Access
    error: DkimctlError | None = None


class AccessReport(NamedTuple):
    """The access to each zone; of a target without names to try, to none of its zones."""

    zones: Sequence[ZoneAccess]
    uncovered: Sequence[Registration]


def check_access(
    registrations: Iterable[Registration],
    targets: Sequence[ConfiguredTarget],
    *,
    tries_named: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> AccessReport:
    """Try the zone of each record, without changing anything.

    `tries_named`: also the other zones that the config file names, with a name that is made up.
    `progress` is told, in this thread, how many are done.
    """
    grouped, uncovered = by_target_zone(registrations, targets)
    # Each zone, the names to try in it, and how many names of it are registered.
    jobs = [(zone, [name for name, _ in named], len(named)) for zone, named in grouped]
    if tries_named:
        known = {(id(item.target), item.zone) for item, _ in grouped}
        zones = [zone for target in targets for zone in target.zones if not is_glob(zone)]
        names = [f"{_MADE_UP}.{zone}" for zone in zones]
        for name, place in find_target_zones(names, targets).items():
            if place is not None and (id(place.target), place.zone) not in known:
                jobs.append((place, [name], 0))
    tried: list[ZoneAccess] = []

    def report_progress() -> None:
        progress(sum(zone.names for zone in tried))

    def add(zone_access: ZoneAccess) -> None:
        tried.append(zone_access)
        report_progress()

    work_in_parallel(jobs, lambda job: [_try_zone(*job)], add, wait=report_progress)
    used = {id(target_zone.target) for target_zone, _, _ in jobs}
    idle = [target.target.label for target in targets if id(target.target) not in used]
    untried = Access(None, None, "nothing that is selected is in it")
    tried += [ZoneAccess(label, "", 0, untried) for label in dict.fromkeys(idle)]
    return AccessReport(sorted(tried, key=lambda zone: (zone.target, zone.zone)), uncovered)


def _try_zone(target_zone: TargetZone, names: Sequence[str], registered: int) -> ZoneAccess:
    target, zone, error = target_zone
    access = Access(readable=False, writable=None)
    if error is None:
        try:
            access = target.check_access(zone, names)
        except DkimctlError as failure:
            error = failure
    if error is not None:
        access = access._replace(reason=error.message, hint=error.hint)
    return ZoneAccess(target.label, zone, registered, access, error)
