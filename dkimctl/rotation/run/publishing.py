"""Publish the keys that sign, or will, and tell what is not in DNS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.verdicts import Check, Urgency, Verdict, urgency_of
from dkimctl.errors import ServiceError
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.rotation.retirement import RetirementStatus
from dkimctl.rotation.run.changing import DnsChanges
from dkimctl.rotation.run.report import State, Step, Task
from dkimctl.rotation.run.tools import RunPolicy
from dkimctl.rotation.succession import Histories
from dkimctl.rotation.urgency import urgency_of_start, warning_time


def needs_record(status: RetirementStatus) -> bool:
    """Whether the record of a key must be in DNS: it signs, or will, or its mail is on its way."""
    return status.registration.signs and not status.is_over


def keys_to_publish(statuses: Iterable[RetirementStatus]) -> list[Registration]:
    """The keys that sign, or will, and those whose mail may still be on its way."""
    return [with_key_len(status.registration) for status in statuses if needs_record(status)]


def unusable(registrations: Iterable[Registration]) -> Iterator[Task]:
    """The tasks of keys that have no sound record: none of them is published."""
    for one in registrations:
        if fault := record_fault(one):
            yield Task(Step.PUBLISH, State.BLOCKED, one, f"its record is not usable: {fault}")


class PublicationTasks:
    """Makes a task of each record that was changed, or is not published."""

    def __init__(
        self,
        changes: DnsChanges,
        checks: Mapping[RegistrationKey, Check],
        published: frozenset[RegistrationKey],
        histories: Histories,
        policy: RunPolicy,
        now: datetime,
    ) -> None:
        self._changes = changes
        self._checks = checks
        self._published = published
        self._histories = histories
        self._policy = policy
        self._now = now

    def of(self, registrations: Sequence[Registration]) -> Iterator[Task]:
        for registration in registrations:
            task = self._task(registration)
            if task is not None:
                check = self._checks.get(registration.key)
                yield task._replace(urgency=self._urgency(registration), check=check)

    def _task(self, one: Registration) -> Task | None:
        key, changes = one.key, self._changes
        if key in changes.changed:
            return self._changed(one)
        if key in changes.failed:  # also if DNS has it: the next change would fail, too
            error = changes.failed[key]
            return Task(Step.PUBLISH, State.FAILED, one, error.message, error=error)
        if key in self._published:
            return None
        check = self._checks.get(key)
        seen = _described(check)
        if key in changes.blocked:
            return Task(Step.PUBLISH, State.BLOCKED, one, changes.blocked[key])
        if check is None:
            return None
        if check.finding.verdict is Verdict.NO_ANSWER:
            return Task(Step.PUBLISH, State.WAITING, one, seen, error=ServiceError(seen))
        state = State.BY_HAND if key in changes.uncovered else State.WAITING
        return Task(Step.PUBLISH, state, one, seen)

    def _changed(self, one: Registration) -> Task:
        if self._policy.is_dry:
            return Task(Step.PUBLISH, State.DUE, one)
        if one.key in self._published:
            return Task(Step.PUBLISH, State.DONE, one)
        reason = f"written; {_described(self._checks.get(one.key))}"
        return Task(Step.PUBLISH, State.WAITING, one, reason)

    def _urgency(self, one: Registration) -> Urgency:
        warn_within = warning_time(self._policy.rotation.lead)
        if one.key in self._published:
            return Urgency.NONE
        check = self._checks.get(one.key)
        if check is not None and check.finding.verdict is not Verdict.NO_ANSWER:
            return urgency_of(check, self._now, warn_within)
        # What DNS has is not known: the last look that told it counts, if there was any.
        history = self._histories.get(one.key, KeyHistory())
        return urgency_of_start(one, history, self._now, self._policy.rotation.lead)


def _described(check: Check | None) -> str:
    """What DNS has for a record that is not published."""
    if check is None:
        return "DNS was not checked"
    verdict, reason = check.finding.verdict, check.finding.reason
    return f"DNS now: {verdict} ({reason})" if reason else f"DNS now: {verdict}"
