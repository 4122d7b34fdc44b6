"""The steps of a run, in order."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from dkimctl.dkim import record_fault
from dkimctl.dns.looks import Looks, recording_looks
from dkimctl.dns.verdicts import Check, Verdict
from dkimctl.errors import DkimctlError, LedgerError, ServiceError
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.rotation.retirement import RetirementPolicy, RetirementStatus
from dkimctl.rotation.review import KnownKeys, read_known_keys
from dkimctl.rotation.run.asking import ServiceAnswers, ask_service
from dkimctl.rotation.run.changing import DnsChanges, Targets, change_dns
from dkimctl.rotation.run.looking import look
from dkimctl.rotation.run.publishing import PublicationTasks, keys_to_publish, unusable
from dkimctl.rotation.run.refreshing import Refreshed
from dkimctl.rotation.run.registering import Registered
from dkimctl.rotation.run.removing import remove_records
from dkimctl.rotation.run.report import Report, State, Step, Task
from dkimctl.rotation.run.retiring import (
    Removal,
    find_removals,
    refused_removals,
    waiting_removals,
)
from dkimctl.rotation.run.tools import RunPolicy, Tools

if TYPE_CHECKING:
    from dkimctl.ledger.selection import Selection


class RotationRun:
    """Does what is due for the selected domains; a dry run only tells.

    What one step cannot do does not keep the next from being done.
    """

    def __init__(self, selection: Selection, policy: RunPolicy, tools: Tools) -> None:
        self._selection = selection
        self._policy = policy
        self._tools = tools
        self._tasks: list[Task] = []
        self._errors: list[DkimctlError] = []
        self._postponed = 0
        self._unknown: set[Step] = set()

    @property
    def report(self) -> Report:
        """What was done and found so far."""
        return Report(self._tasks, self._errors, self._postponed, frozenset(self._unknown))

    def execute(self) -> Report:
        """Raises LedgerError if the ledger cannot be read, and Interrupted."""
        before = self._known()
        statuses = self._statuses(before)
        answers = self._ask_service(before, statuses)
        self._tasks += answers.registered.tasks
        self._postponed = answers.registered.postponed
        self._tasks += refused_removals(statuses, answers.refreshed)
        if answers.error is not None:
            self._errors.append(answers.error)
            self._unknown |= {Step.REGISTER, Step.REMOVE}
        self._work_on_dns(answers.refreshed)
        return self.report

    def _ask_service(
        self, known: KnownKeys, statuses: Sequence[RetirementStatus]
    ) -> ServiceAnswers:
        try:
            return ask_service(self._selection, known, statuses, self._policy, self._tools)
        except LedgerError as error:  # it may be read nevertheless, such as on a full disk
            return ServiceAnswers(Registered(()), Refreshed(error=error))

    def _work_on_dns(self, refreshed: Refreshed) -> None:
        known = self._known()
        targets = self._open_targets()
        keys = keys_to_publish(self._statuses(known))
        self._tasks += unusable(keys)
        sound = [one for one in keys if not record_fault(one)]
        changes = change_dns(sound, targets, remove=False, is_dry=self._policy.is_dry)
        try:
            with self._recording() as looks:
                checks = look(sound, changes.changed, self._policy, self._tools, looks)
        except ServiceError as error:
            self._errors.append(error)
            self._unknown |= {Step.PUBLISH, Step.REMOVE}
            self._tell(sound, changes, {}, frozenset(), known)
            return
        published = _with_verdict(looks, Verdict.PUBLISHED)
        self._tell(sound, changes, checks, published, known)
        statuses = self._statuses(known.after(looks, self._tools.clock()), published)
        self._tasks += waiting_removals(statuses)
        self._remove(find_removals(statuses, refreshed.confirmed, published), targets)

    def _tell(
        self,
        keys: Sequence[Registration],
        changes: DnsChanges,
        checks: dict[RegistrationKey, Check],
        published: frozenset[RegistrationKey],
        known: KnownKeys,
    ) -> None:
        now = self._tools.clock()
        tasks = PublicationTasks(changes, checks, published, known.histories, self._policy, now)
        self._tasks += tasks.of(keys)

    def _remove(self, removals: Sequence[Removal], targets: Targets) -> None:
        if not removals:
            return
        try:
            with self._recording() as looks:
                removed = remove_records(removals, targets, self._policy, self._tools, looks)
        except ServiceError as error:
            self._errors.append(error)
            self._unknown.add(Step.REMOVE)
            return
        self._tasks += removed.tasks
        if not removed.gone:
            return
        is_closed = not self._policy.is_dry and self._close(removed.gone)
        state = State.DONE if is_closed else State.DUE
        for one in removed.gone:
            reason = f"replaced by {one.successor.selector}"
            self._tasks.append(Task(Step.REMOVE, state, one.registration, reason))

    def _close(self, gone: Sequence[Removal]) -> bool:
        """Close the entries; the selectors stay in the ledger, and are never used again."""
        try:
            with self._tools.lock_account(), self._tools.open_ledger(for_writing=True) as ledger:
                ledger.check()
                ledger.retire({one.registration: one.successor.selector for one in gone})
        except LedgerError as error:
            self._errors.append(error)
            return False
        return True

    def _known(self) -> KnownKeys:
        """All keys of the selected domains, also if a spec file names some of them alone."""
        known = read_known_keys(self._tools.open_ledger(for_writing=False), self._selection)
        return known._replace(selected=frozenset(known.registrations))

    def _statuses(
        self, known: KnownKeys, published: frozenset[RegistrationKey] | None = None
    ) -> list[RetirementStatus]:
        now = self._tools.clock()
        grace = self._policy.rotation.grace
        return known.statuses(RetirementPolicy(now, now, published_now=published, grace=grace))

    def _open_targets(self) -> Targets:
        try:
            return self._tools.open_targets()
        except DkimctlError as error:
            self._errors.append(error)
            return error

    def _recording(self) -> AbstractContextManager[Looks]:
        """Looks that the ledger gets, but for a dry run."""
        if self._policy.is_dry:
            return contextlib.nullcontext(Looks())
        return recording_looks(
            lambda: self._tools.open_ledger(for_writing=True), on_failure=self._note_failure
        )

    def _note_failure(self, error: LedgerError) -> None:
        self._errors.append(error)


def _with_verdict(looks: Looks, verdict: Verdict) -> frozenset[RegistrationKey]:
    return frozenset(key for key, one in looks.latest.items() if one is verdict)
