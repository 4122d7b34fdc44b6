"""Which target and zone each name belongs to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dkimctl.errors import DkimctlError, NegativeAnswer
from dkimctl.publishing.targets import ConfiguredTarget, Target
from dkimctl.text.dns_names import is_glob, parents
from dkimctl.text.escaping import printable


class TargetZone(NamedTuple):
    """A zone of a target. `error`: why it cannot be used; `zone` may be "" then."""

    target: Target
    zone: str
    error: DkimctlError | None = None


class _Rule(NamedTuple):
    """A way in which the config file gives zones to a target; no glob: all its zones.

    `named` is the zone that it names.
    """

    target: Target
    named: str = ""
    globs: tuple[str, ...] = ()

    def may_have(self, fqdn: str) -> bool:
        """Whether a zone that contains this name can be meant."""
        return not self.globs or any(map(self._is_meant, parents(fqdn)))

    def target_zone(self, found: str | None) -> TargetZone | None:
        """Where a name is that is in the zone `found` of the target; None: not by this rule."""
        if self.named:
            return self._by_name(found)
        if found is None or (self.globs and not self._is_meant(found)):
            return None
        return TargetZone(self.target, found)

    def _by_name(self, found: str | None) -> TargetZone | None:
        if found is not None and found.lower() == self.named:
            return TargetZone(self.target, found)
        if found is not None and found.lower().endswith(f".{self.named}"):
            return None  # a zone of its own
        return TargetZone(
            self.target,
            self.named,
            NegativeAnswer(
                f"{self.target.label} has no zone {printable(self.named)}",
                hint="correct `zones` or the server of `dns` in the config file",
            ),
        )

    def _is_meant(self, zone: str) -> bool:
        return any(fnmatch.fnmatchcase(zone.lower(), glob) for glob in self.globs)


def find_target_zones(
    names: Sequence[str], targets: Sequence[ConfiguredTarget]
) -> Mapping[str, TargetZone | None]:
    """The target and zone of each name; None: in no zone of any target.

    The longest zone name that contains it decides, of all targets; else the first target with a
    glob for its zone, or without `zones`. If a target gives no answer, no other is tried: it might
    be the one.
    """
    by_zone = {
        zone: _Rule(one.target, named=zone) for one in reversed(targets) for zone in _names(one)
    }
    others = [rule for one in targets for rule in _other_rules(one)]
    candidates = {name: _candidates(name, by_zone, others) for name in names}
    target_zones: dict[str, TargetZone | None] = dict.fromkeys(names)
    zones = _KnownZones()
    left = list(target_zones)
    while left:
        asked = [(name, rule) for name in left if (rule := next(candidates[name], None))]
        left = []
        for name, target_zone in zones.target_zones(asked):
            target_zones[name] = target_zone
            if target_zone is None:
                left.append(name)
    return target_zones


def _names(one: ConfiguredTarget) -> list[str]:
    return [zone.lower() for zone in one.zones if not is_glob(zone)]


def _other_rules(one: ConfiguredTarget) -> Iterator[_Rule]:
    globs = tuple(zone.lower() for zone in one.zones if is_glob(zone))
    if globs or not one.zones:
        yield _Rule(one.target, globs=globs)


def _candidates(
    name: str, by_zone: Mapping[str, _Rule], others: Sequence[_Rule]
) -> Iterator[_Rule]:
    """The rules that may give a name its zone, in the order in which they apply."""
    yield from (by_zone[parent] for parent in parents(name) if parent in by_zone)
    yield from (rule for rule in others if rule.may_have(name))


class _KnownZones:
    """Asks each target once for the zone of a name."""

    def __init__(self) -> None:
        self._found: dict[int, dict[str, str | None]] = {}

    def target_zones(
        self, asked: Sequence[tuple[str, _Rule]]
    ) -> Iterator[tuple[str, TargetZone | None]]:
        by_target: dict[int, list[tuple[str, _Rule]]] = {}
        for name, rule in asked:
            by_target.setdefault(id(rule.target), []).append((name, rule))
        for of_target in by_target.values():
            yield from self._zones_of(of_target[0][1].target, of_target)

    def _zones_of(
        self, target: Target, asked: Sequence[tuple[str, _Rule]]
    ) -> Iterator[tuple[str, TargetZone | None]]:
        found = self._found.setdefault(id(target), {})
        try:
            if unknown := [name for name, _ in asked if name not in found]:
                found.update(target.find_zones(unknown))
        except DkimctlError as error:
            for name, rule in asked:
                yield name, TargetZone(target, rule.named, error)
            return
        for name, rule in asked:
            yield name, rule.target_zone(found.get(name))
