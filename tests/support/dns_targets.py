"""A DNS target in memory, for plans and for what applies them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dkimctl.errors import DkimctlError, NegativeAnswer
from dkimctl.models import Registration
from dkimctl.names import zone_finder
from dkimctl.publishing.plan import Access, Action, Change, NameState


class FakeTarget:
    """Has `zones`, and what is in `names`, each by its FQDN in lower case.

    `given` are the zones that the config file has for it.
    `errors` are raised by these methods, or, of `apply`, told of all changes of these zones.
    `calls` are the methods that were called, each with the zone. `before_change` is called in the
    thread of the zone.
    """

    def __init__(
        self,
        *zones: str,
        names: Mapping[str, NameState] | None = None,
        given: Sequence[str] = (),
        label: str = "dns.test",
        ttl: int = 3600,
        errors: Mapping[str, DkimctlError] | None = None,
        access: Access = Access(readable=True, writable=True),  # noqa: B008 - a constant
        before_change=lambda change: None,
        shadowed: Mapping[str, tuple[str, ...] | None] | None = None,
    ) -> None:
        self.label = label
        self.zones = given
        self.ttl = ttl
        self.names = dict(names or {})
        self.calls: list[tuple[str, str]] = []
        self.asked: list[list[str]] = []
        self.applied: list[str] = []
        self._find_zone = zone_finder(zones)
        self._errors = errors or {}
        self._access = access
        self._before_change = before_change
        self._shadowed = shadowed or {}

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        self.asked.append(list(names))
        self._raise("find_zones")
        return {name: self._find_zone(name) for name in names}

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        self.calls.append(("read", zone))
        self._raise("read")
        self._raise(zone)
        return {name: self.names.get(name, NameState()) for name in names}

    def find_shadowed(
        self, zone: str, names: Sequence[str]
    ) -> Mapping[str, tuple[str, ...] | None]:
        self.calls.append(("find_shadowed", zone))
        self._raise("find_shadowed")
        return {name: self._shadowed[name] for name in names if name in self._shadowed}

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Change]:
        self.calls.append(("apply", zone))
        for change in changes:
            self._before_change(change)
            error = self._change(zone, change)
            yield change.failed(error) if error else change.made()

    def _change(self, zone: str, change: Change) -> DkimctlError | None:
        if error := self._errors.get(f"apply {zone}"):
            return error
        name = change.name.lower()
        if self.names.get(name, NameState()) != change.before:
            return NegativeAnswer("DNS has changed since it was read", hint="run it again")
        self.applied.append(name)
        if change.action is Action.REMOVE:
            del self.names[name]
        else:
            self.names[name] = NameState((change.value,), change.ttl)
        return None

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        self.calls.append(("check_access", zone))
        self._raise("check_access")
        return self._access

    def _raise(self, what: str) -> None:
        if error := self._errors.get(what):
            raise error


def published(*registrations: Registration, ttl: int = 3600) -> dict[str, NameState]:
    """What a target has that has published these."""
    return {one.record.fqdn.lower(): NameState((one.record.value,), ttl) for one in registrations}
