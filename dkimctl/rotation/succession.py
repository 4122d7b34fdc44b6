"""Which keys of a signing domain replace which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import Registration, RegistrationKey, utc_time

Histories = Mapping[RegistrationKey, KeyHistory]  # as the ledger has them


class Successor(NamedTuple):
    """A key that replaces an older one: enabled now, and of a later start."""

    registration: Registration
    starts_at: datetime
    enabled_at: datetime
    history: KeyHistory

    @property
    def selector(self) -> str:
        return self.registration.selector or ""


class Succession:
    """The successors of each of a domain's keys, `of_domain`."""

    def __init__(self, of_domain: Sequence[Registration], histories: Histories) -> None:
        self._registrations = of_domain
        self._histories = histories
        self._replacing: dict[str, list[Registration]] = {}  # by the selector that is replaced
        for registration in of_domain:
            replaces = self._history(registration).replaces
            if replaces is not None:
                self._replacing.setdefault(replaces.lower(), []).append(registration)

    def recorded(self, old: Registration) -> list[Successor]:
        """The keys that were made to replace `old`, or a key that was, and so on."""
        return [*self._successors(old, self._with_descendants([old]))]

    def assumed(self, old: Registration) -> list[Successor]:
        """The newer keys of which it is not recorded what they replace, and keys that replace them.

        The latter may be all that is left: the former may be disabled, or retired themselves.
        """
        unrecorded = [
            one
            for one in self._registrations
            if self._history(one).replaces is None and _is_newer(one, old)
        ]
        return [*self._successors(old, self._with_descendants(unrecorded))]

    def _with_descendants(self, registrations: Iterable[Registration]) -> list[Registration]:
        found = list(registrations)
        for one in found:  # also those added meanwhile
            following = self._replacing.get(one.key.selector, ())
            found += [other for other in following if other not in found]
        return found

    def _successors(
        self, old: Registration, candidates: Sequence[Registration]
    ) -> Iterator[Successor]:
        for one in candidates:
            start, history = one.starts_at, self._history(one)
            if (
                start is not None
                and history.enabled_at is not None
                and history.disabled_at is None
                and one.signs
                and _is_newer(one, old)
            ):
                yield Successor(one, start, history.enabled_at, history)

    def _history(self, registration: Registration) -> KeyHistory:
        return self._histories.get(registration.key, KeyHistory())


def _is_newer(one: Registration, old: Registration) -> bool:
    """Whether a key signs the same mail (default, interface 2.3), and begins later than another.

    Its start_date as it is written must be later, too: the interface does not say which of several
    keys signs, so the service may go by either.
    """
    return one.third_party == old.third_party and all(
        ours is not None and theirs is not None and ours > theirs
        for ours, theirs in zip(_beginnings(one), _beginnings(old), strict=True)
    )


def _beginnings(registration: Registration) -> tuple[datetime | None, datetime | None]:
    start = registration.starts_at
    return start, utc_time(registration.start_date) or start
