"""Put records into DNS through octoDNS, which has a provider for most DNS services."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dkimctl.errors import DkimctlError, DnsRefused, NegativeAnswer, ServiceError, UsageError
from dkimctl.publishing.changes import (
    Access,
    Applied,
    Change,
    NameState,
    changed_error,
    is_same,
    outcome_of,
)
from dkimctl.publishing.providers.failures import Failures
from dkimctl.publishing.providers.opening import load_class, make_provider
from dkimctl.publishing.providers.plans import (
    make_plan,
    make_rewriting_plan,
    unfit_value,
)
from dkimctl.publishing.providers.sharing import SharedProvider
from dkimctl.publishing.providers.zone_contents import list_zones, read_zone, states_of
from dkimctl.text.character_strings import MAX_STRING
from dkimctl.text.dns_names import zone_finder
from dkimctl.text.escaping import printable

_ONE_STRING = MAX_STRING // 2  # characters; each can have a backslash


class OctodnsTarget:
    """The zones of one provider; `class_name` is its module and class.

    `settings` are what the class takes, with a Secret for each secret. `zones` are the names that
    the config file has, for providers that do not list theirs.
    """

    def __init__(
        self,
        class_name: str,
        settings: Mapping[str, object],
        ttl: int,
        *,
        zones: Sequence[str] = (),
    ) -> None:
        self.label = class_name
        self.ttl = ttl
        self._zones = zones
        self._failures = Failures(class_name, settings)
        cls = load_class(class_name)
        self._provider = SharedProvider(
            lambda: self._failures.opening(lambda: make_provider(cls, settings))
        )

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """See Target. Without a list from the provider, zones are those that the config names."""
        find = zone_finder(self._list_zones(names))
        return {name: find(name) for name in names}

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """See Target."""
        with self._provider.reading(zone) as provider:
            return states_of(self._read_zone(provider, zone, names), zone, names)

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        """See Target. The provider gets all changes at once.

        octoDNS has no prerequisites: what is there is compared just before.
        """
        fitting: list[Change] = []
        for change in changes:
            if error := unfit_value(change):
                yield Applied(change, error)
            else:
                fitting.append(change)
        if fitting:
            yield from self._apply(zone, fitting)

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """See Target. Only a change would tell whether it may write."""
        self.read(zone, names)
        return Access(True, None, "the provider tells only at a change whether it is allowed")

    def _apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        names = [change.record.fqdn for change in changes]
        try:
            with self._provider.reading(zone) as provider:
                existing = self._read_zone(provider, zone, names)
                states = states_of(existing, zone, names)
                wanted = [one for one in changes if is_same(states[one.record.fqdn], one.before)]
                failure = self._change(provider, existing, zone, wanted) if wanted else None
        except DkimctlError as error:
            yield from (Applied(change, error) for change in changes)
            return
        for change in changes:
            if not is_same(states[change.record.fqdn], change.before):
                yield Applied(change, changed_error(change))
        if failure is not None or any(map(_may_stay, wanted)):
            yield from self._look_again(zone, wanted, failure)
        else:
            yield from map(Applied, wanted)

    def _change(
        self, provider: Any, existing: Any, zone: str, changes: Sequence[Change]
    ) -> DkimctlError | None:
        """Why the provider did not make all the changes."""
        names = [change.record.fqdn for change in changes]
        try:
            self._attempt(
                zone, lambda: provider.apply(make_plan(provider, existing, changes)), names
            )
        except DkimctlError as error:
            return error
        return None

    def _attempt(self, zone: str, change: Callable[[], object], names: Sequence[str]) -> None:
        self._failures.trying(f"change the zone {printable(zone)}", change, [zone, *names])

    def _look_again(
        self, zone: str, changes: Sequence[Change], error: DkimctlError | None
    ) -> Iterator[Applied]:
        """Find out which changes were made, after the provider has failed or removed nothing."""
        try:
            states = self._read_again(zone, changes)
        except DkimctlError as unread:
            yield from (Applied(change, error or unread) for change in changes)
            return
        for change in changes:
            yield outcome_of(change, states[change.record.fqdn], error or self._ignored(change))

    def _read_again(self, zone: str, changes: Sequence[Change]) -> Mapping[str, NameState]:
        """What is there now, after another attempt to remove what the provider has not."""
        names = [change.record.fqdn for change in changes]
        states = self.read(zone, names)
        left = [
            change
            for change in changes
            if _may_stay(change) and is_same(states[change.record.fqdn], change.before)
        ]
        if not left:
            return states
        self._read_and_apply(zone, left, make_rewriting_plan)
        self._read_and_apply(zone, left, make_plan)
        return self.read(zone, names)

    def _read_and_apply(
        self,
        zone: str,
        changes: Sequence[Change],
        make: Callable[[Any, Any, Sequence[Change]], Any],
    ) -> None:
        names = [change.record.fqdn for change in changes]
        with self._provider.reading(zone) as provider:
            existing = self._read_zone(provider, zone, names)
            self._attempt(zone, lambda: provider.apply(make(provider, existing, changes)), names)

    def _ignored(self, change: Change) -> DkimctlError:
        return ServiceError(
            f"{self.label} accepted the removal of {printable(change.record.fqdn)}, but the "
            "record is still there",
            hint="remove it by hand",
        )

    def _list_zones(self, names: Sequence[str]) -> Sequence[str]:
        with self._provider.using() as provider:
            if not hasattr(provider, "list_zones"):
                return self._named_zones()
            try:
                known: list[str] = self._failures.trying(
                    "list its zones", lambda: list_zones(provider), [*self._zones, *names]
                )
            except DnsRefused:
                if self._zones:  # credentials may be for these zones only
                    return self._zones
                raise
        return known

    def _named_zones(self) -> Sequence[str]:
        if self._zones:
            return self._zones
        raise UsageError(
            f"{self.label} does not tell which zones it has",
            hint="name each zone in `zones` of its entry in `dns` in the config file, no globs",
        )

    def _read_zone(self, provider: Any, zone: str, names: Sequence[str]) -> Any:
        doing = f"read the zone {printable(zone)}"
        existing = self._failures.trying(doing, lambda: read_zone(provider, zone), [zone, *names])
        if existing is None:
            raise NegativeAnswer(
                f"{self.label} has no zone {printable(zone)}, or does not tell what is in it",
                hint="correct `zones` or `settings` of `dns` in the config file; a provider that "
                "writes files and does not read them cannot be used",
            )
        return existing


def _may_stay(change: Change) -> bool:
    """Whether the provider may not find the record that it is to remove.

    Some, such as octodns-bind and octodns-route53, remove only a record whose strings are split
    where octoDNS splits them, and that is not where others do: it counts backslashes.
    """
    return change.value is None and any(len(one) > _ONE_STRING for one in change.before.values)
