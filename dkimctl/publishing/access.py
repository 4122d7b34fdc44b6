"""Whether zones can be read and written, without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from dkimctl.errors import DkimctlError
from dkimctl.models.registration import Registration
from dkimctl.publishing.coverage import TargetZone, find_target_zones
from dkimctl.publishing.parallel import work_in_parallel
from dkimctl.publishing.planning import by_target_zone
from dkimctl.publishing.targets import Access, ConfiguredTarget
from dkimctl.text.dns_names import is_glob

_MADE_UP = "dkimctl-access-check._domainkey"  # a name to try in a zone without registrations

# A zone, the names to try in it, and how many names of it are registered.
_Tried: TypeAlias = tuple[TargetZone, Sequence[str], int]


class ZoneAccess(NamedTuple):
    """The access to a zone with this number of registered `names`.

    `error`: why it could not be found or read. `zone` is "" if it is not known, or if there is no
    name to try.
    """

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
    """Try the zone of each record; `progress` is told, in this thread, how many are done.

    `tries_named`: also the other zones that the config file names, with a name that is made up.
    """
    target_zones, uncovered = by_target_zone(registrations, targets)
    jobs: list[_Tried] = [
        (target_zone, [one for one, _ in named], len(named)) for target_zone, named in target_zones
    ]
    if tries_named:
        jobs += _named_zones(
            targets, {(id(target_zone.target), target_zone.zone) for target_zone, _ in target_zones}
        )
    zones: list[ZoneAccess] = []
    tried = 0

    def add(one: ZoneAccess) -> None:
        nonlocal tried
        zones.append(one)
        tried += one.names
        progress(tried)

    work_in_parallel(jobs, lambda job: [_try_zone(*job)], add, wait=lambda: progress(tried))
    used = {id(target_zone.target) for target_zone, _, _ in jobs}
    idle = [one.target.label for one in targets if id(one.target) not in used]
    untried = Access(None, None, "nothing that is selected is in it")
    zones += [ZoneAccess(label, "", 0, untried) for label in dict.fromkeys(idle)]
    return AccessReport(sorted(zones, key=lambda one: (one.target, one.zone)), uncovered)


def names_zones(targets: Iterable[ConfiguredTarget]) -> bool:
    """Whether the config file names a zone; a glob is no name."""
    return any(not is_glob(zone) for one in targets for zone in one.zones)


def _named_zones(
    targets: Sequence[ConfiguredTarget], known: set[tuple[int, str]]
) -> Iterator[_Tried]:
    """What to try in the zones that the config file names, but for those that are `known`."""
    zones = [zone for one in targets for zone in one.zones if not is_glob(zone)]
    names = [f"{_MADE_UP}.{zone}" for zone in zones]
    for name, target_zone in find_target_zones(names, targets).items():
        if target_zone is not None and (id(target_zone.target), target_zone.zone) not in known:
            yield target_zone, [name], 0


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
