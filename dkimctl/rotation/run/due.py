"""Which successors a run registers: those that earlier runs began, and new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import DomainSpec, Registration, RegistrationKey, by_signing_domain
from dkimctl.rotation.run.begun import Begun, read_begun
from dkimctl.rotation.run.entries import count_registered_on, rotation_policy, spec_of
from dkimctl.rotation.run.report import State, Step, Task
from dkimctl.rotation.succession import Histories
from dkimctl.rotation.successors import find_successors, lines_of, newest_of
from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.ledger.selection import Selection


class DueSuccessors(NamedTuple):
    """The successors to register now, that of the oldest key first.

    `held`: keys that are due, and get none until the user decides. `postponed`: how many more are
    due than the limit of the day allows.
    """

    specs: Sequence[DomainSpec]
    held: Sequence[Task] = ()
    postponed: int = 0


def find_due(
    ledger: Ledger, selection: Selection, settings: RotationSettings, now: datetime
) -> DueSuccessors:
    """What to register now for the selected domains.

    A successor that an earlier run has begun keeps its selector: the service answers with the
    registration, if that run has made one.
    """
    registrations, histories = list(ledger.all()), ledger.histories()
    begun = read_begun(ledger, {one.key for one in registrations})
    due = _DueKeys(settings, begun, histories, now)
    used = _by_domain(
        [
            *begun.successors.values(),
            *begun.unanswered,
            *(closed.key for closed in ledger.closed_keys()),
        ]
    )
    selected = {one.key.sign_domain for one in selection.pick(ledger.ours())}
    for domain, of_domain in by_signing_domain(registrations).items():
        if domain in selected:
            due.add_domain(of_domain, used.get(domain, ()))
    return due.within(settings.limit - count_registered_on(now, registrations, histories))


def _by_domain(keys: Iterable[RegistrationKey]) -> dict[str, list[RegistrationKey]]:
    of_domain: dict[str, list[RegistrationKey]] = {}
    for key in keys:
        of_domain.setdefault(key.sign_domain, []).append(key)
    return of_domain


class _DueKeys:
    """Gathers the successors of keys that are due."""

    def __init__(
        self, settings: RotationSettings, begun: Begun, histories: Histories, now: datetime
    ) -> None:
        self._settings = settings
        self._policy = rotation_policy(settings, now)
        self._begun = begun
        self._histories = histories
        self._now = now
        self._settling: list[DomainSpec] = []
        self._new: list[tuple[datetime, DomainSpec]] = []
        self._held: list[Task] = []

    def add_domain(
        self, of_domain: Sequence[Registration], used: Sequence[RegistrationKey]
    ) -> None:
        """Take in a domain with all its registrations; `used` are other keys that it has had."""
        for old in of_domain:
            if self._begun.is_unanswered(old.key):
                self._settling.append(self._to_settle(old, of_domain))
        try:
            rotation = find_successors(of_domain, used, self._now, self._policy)
        except UsageError as error:
            self._hold(of_domain[-1], error.message.removeprefix("in --selector: "))
            return
        if rotation.undated:
            self._hold(of_domain[-1], "the age of its keys is not known")
        self._hold_if_late(of_domain)
        for spec in rotation.successors:
            line = (one for one in of_domain if one.signs and one.third_party == spec.default)
            newest = newest_of(line)
            if newest is not None and not self._begun.is_unanswered(newest.registration.key):
                self._add(newest.registration, spec.selector, of_domain)

    def within(self, allowed: int) -> DueSuccessors:
        """The successors, of which at most `allowed` are new on this day."""
        left = max(0, allowed - len(self._settling))
        specs = [spec for _, spec in sorted(self._new, key=lambda one: one[0])]
        postponed = max(0, len(specs) - left)
        return DueSuccessors([*self._settling, *specs[:left]], self._held, postponed)

    def _to_settle(self, old: Registration, of_domain: Sequence[Registration]) -> DomainSpec:
        """The entry of a successor that may be registered.

        If the key has got another one meanwhile, it is only to be found out: what is registered
        stays as it is (409, interface 7.3), and a new key is of no use.
        """
        selector = self._begun.successors[old.key].selector
        spec = spec_of(old, selector, self._settings, self._now)
        has_other = any(one.signs for one in _successors(old, of_domain, self._histories))
        return spec._replace(enable=False) if has_other else spec

    def _add(
        self, old: Registration, selector: str | None, of_domain: Sequence[Registration]
    ) -> None:
        foreign = self._begun.foreign.get(old.key.sign_domain)
        successors = _successors(old, of_domain, self._histories)
        disabled = next((one for one in successors if not one.signs), None)
        if foreign is not None:
            name = foreign.selector or "chosen by the service"
            self._hold(
                old,
                f"a request for another selector ({name}) was never answered: register the file "
                "of that run again",
            )
        elif disabled is not None:
            self._hold(
                old,
                f"its successor {disabled.selector} is disabled at the service: enable it there, "
                "then `dkimctl register --refresh FILE`",
            )
        else:
            begun = self._begun.successors.get(old.key)
            spec = spec_of(old, begun.selector if begun else selector, self._settings, self._now)
            self._new.append((old.created_at or self._now, spec))

    def _hold_if_late(self, of_domain: Sequence[Registration]) -> None:
        """Hold keys that are due, and whose successor starts long after a new one would."""
        latest = self._now + 2 * self._settings.lead
        for line in lines_of(of_domain):
            starts = {one: one.starts_at for one in line}
            later = {one: at for one, at in starts.items() if at is not None and at > self._now}
            newest = newest_of(one for one in line if one not in later)
            if not later or newest is None or min(later.values()) <= latest:
                continue
            if newest.created_at <= self._now - self._settings.max_age:
                next_ = min(later, key=later.__getitem__)
                self._hold(
                    newest.registration,
                    f"{next_.selector}, which follows it, does not start before "
                    f"{later[next_].date()}: register another one with an earlier start_date",
                )

    def _hold(self, registration: Registration, reason: str) -> None:
        self._held.append(Task(Step.REGISTER, State.BLOCKED, registration, reason))


def _successors(
    old: Registration, of_domain: Iterable[Registration], histories: Histories
) -> Iterator[Registration]:
    """Our keys that were made to replace `old`."""
    for one in of_domain:
        replaces = histories.get(one.key, KeyHistory()).replaces or ""
        if replaces.lower() == old.key.selector and not one.is_taken:
            yield one
