"""`rotate run`: does what is due, in order, with what a caller passes in.

First the service, under the lock of the account: successors that are due are registered, and those
of keys past their grace period are asked for once more. Then DNS: keys are published and looked
at, and records of retired keys removed. What one step cannot do does not keep the next from being
done, and each looks before it acts, so a run may be killed anywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.check import CheckPolicy, check_publication
from dkimctl.dns.verdicts import Check, Looks, Urgency, Verdict, recording_looks
from dkimctl.errors import DkimctlError, Interrupted, LedgerError, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import (
    USABLE,
    DomainSpec,
    KeyHistory,
    Outcome,
    Registration,
    RegistrationKey,
    Result,
    named,
)
from dkimctl.publishing.plan import Action, Applied, ConfiguredTarget, apply_plan, make_plan
from dkimctl.registration import outcomes
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.preflight import Planner
from dkimctl.rotation.due import (
    DnsChange,
    DnsChanges,
    Refreshed,
    Removal,
    Report,
    RunPolicy,
    State,
    Step,
    Task,
    Tools,
    find_removals,
    publication_tasks,
    refused_removals,
    removal_tasks,
    unusable,
    waiting_removals,
)
from dkimctl.rotation.retirement import (
    Histories,
    KnownKeys,
    RetirementPolicy,
    RetirementStatus,
    read_known_keys,
)
from dkimctl.rotation.successors import HeldKey, find_due, spec_of

if TYPE_CHECKING:
    from dkimctl.names import Selection

_MAX_SKEW = timedelta(days=1)
_MAX_ROUNDS = 3  # of selectors that another account has
_STATES = {
    Outcome.PENDING: State.DUE,
    Outcome.FAILED: State.FAILED,
    Outcome.UNKNOWN: State.FAILED,
}

# The targets of the config file, or why none of them can be used.
Targets = Sequence[ConfiguredTarget] | DkimctlError


class RotationRun:
    """Does what is due for the selected domains; a dry run only tells."""

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
        known = self._known()
        statuses = self._statuses(known)
        try:
            refreshed = self._ask_service(known.histories, statuses)
        except LedgerError as error:  # it may be read nevertheless, such as on a full disk
            refreshed = Refreshed(error=error)
        self._tasks += refused_removals(statuses, refreshed)
        if refreshed.error is not None:
            self._errors.append(refreshed.error)
            self._unknown |= {Step.REGISTER, Step.REMOVE}
        self._work_on_dns(refreshed)
        return self.report

    def _ask_service(self, histories: Histories, statuses: Sequence[RetirementStatus]) -> Refreshed:
        """Register the successors that are due, and refresh those of keys past the grace period.

        Nothing is locked or sent if there are none. Raises LedgerError, Interrupted.
        """
        tools, now = self._tools, self._tools.clock()
        ledger = tools.open_ledger(for_writing=False)
        due = find_due(ledger, self._selection, self._policy.rotation, now)
        over = (
            successor for status in statuses if status.is_over for successor in status.successors
        )
        successors = list(dict.fromkeys(over))
        if self._policy.is_dry or not (due.specs or successors):
            self._tasks += [
                Task(Step.REGISTER, State.DUE, outcomes.pending(spec).registration, _replaces(spec))
                for spec in due.specs
            ]
            self._note_held(due.held, due.postponed)
            return Refreshed(frozenset(successor.key for successor in successors))
        with tools.lock_account(), tools.open_ledger(for_writing=True) as ledger:
            now = tools.clock()  # it may have waited for long
            error = self._register_due(ledger, now)
            if error is not None:
                return Refreshed(error=error)
            return self._refresh(successors, histories, ledger, now)

    def _register_due(self, ledger: Ledger, now: datetime) -> DkimctlError | None:
        """Register what is due; what ended it early, if anything.

        Where another account has a selector, another one is tried. Raises LedgerError, Interrupted.
        """
        settings = self._policy.rotation
        due = find_due(ledger, self._selection, settings, now)
        self._note_held(due.held, due.postponed)
        specs, error = due.specs, None
        for rounds_left in reversed(range(_MAX_ROUNDS)):
            sent = _send(specs, ledger, self._tools, now, refresh=False)
            new = (
                result.registration for result in sent.results if result.outcome is Outcome.CREATED
            )
            late = max(
                (now - (registration.created_at or now) for registration in new),
                default=timedelta(),
            )
            if late > _MAX_SKEW:
                self._tools.warn(
                    f"the clock of this machine is {late.days} days ahead of the service's: new "
                    "keys start that much too late; correct the clock, and register others in "
                    "their place"
                )
            taken = {
                result.registration.key
                for result in sent.results
                if result.outcome is Outcome.TAKEN
            }
            error = sent.error
            may_retry = taken and rounds_left and error is None
            again = find_due(ledger, self._selection, settings, now).specs if may_retry else ()
            tasks = [*_registration_tasks(specs, sent)]
            lines = {(spec.sign_domain, spec.default) for spec in specs if spec.key in taken}
            specs = [spec for spec in again if (spec.sign_domain, spec.default) in lines]
            self._tasks += [
                task for task in tasks if not (specs and task.registration.key in taken)
            ]
            if not specs:
                break
        return error

    def _note_held(self, held: Iterable[HeldKey], postponed: int) -> None:
        self._tasks += [Task(Step.REGISTER, State.BLOCKED, *held_key) for held_key in held]
        self._postponed = postponed

    def _refresh(
        self,
        successors: Sequence[Registration],
        histories: Histories,
        ledger: Ledger,
        now: datetime,
    ) -> Refreshed:
        """Send entries for these keys; the ledger gets the answers.

        The service answers with what it has (409, interface 7.3). A key that it no longer has is
        registered anew, and starts as late as any successor.
        """
        known = {successor.key: successor for successor in successors}
        specs = [
            spec_of(name, name.selector, self._policy.rotation, now)._replace(
                replaces=histories.get(name.key, KeyHistory()).replaces
            )
            for name in known.values()
        ]
        sent = _send(specs, ledger, self._tools, now, refresh=True)
        refused = {}  # by key, why the older one has to stay
        for result in sent.results:
            answer, outcome = result.registration, result.outcome
            if outcome not in USABLE:
                refused[answer.key] = f"{outcome}: {result.reason}"
            elif answer.enable is False:
                refused[answer.key] = "it is disabled at the service"
            elif answer.code != "409" or answer.record != known[answer.key].record:
                refused[answer.key] = "the service has another key for it now"
        return Refreshed(frozenset(known.keys() - refused.keys()), refused, sent.error)

    def _work_on_dns(self, refreshed: Refreshed) -> None:
        known = self._known()
        try:
            targets: Targets = self._tools.open_targets()
        except DkimctlError as error:
            self._errors.append(error)
            targets = error
        needed = (status for status in self._statuses(known) if status.needs_record)
        keys = [with_key_len(status.registration) for status in needed]
        self._tasks += unusable(Step.PUBLISH, keys)
        sound = [key for key in keys if not record_fault(key)]
        changes = _change_dns(sound, targets, remove=False, is_dry=self._policy.is_dry)
        checks: dict[RegistrationKey, Check] = {}
        looks = None
        try:
            with self._recording() as looks:
                checks = self._look(sound, changes, looks)
        except ServiceError as error:
            looks = None
            self._errors.append(error)
            self._unknown |= {Step.PUBLISH, Step.REMOVE}
        now = self._tools.clock()
        published = _with_verdict(looks, Verdict.PUBLISHED) if looks is not None else frozenset()
        self._tasks += publication_tasks(
            sound, changes, checks, published, known.histories, self._policy, now
        )
        if looks is not None:
            statuses = self._statuses(known.after(looks, self._tools.clock()), published)
            self._tasks += waiting_removals(statuses)
            self._remove(find_removals(statuses, refreshed.confirmed, published), targets)

    def _remove(self, removals: Sequence[Removal], targets: Targets) -> None:
        """Remove these records, as far as targets cover them, and prove that they are gone."""
        if not removals:
            return
        tools, keys = self._tools, [with_key_len(removal.registration) for removal in removals]
        sound = [key for key in keys if not record_fault(key)]
        try:
            with self._recording() as looks:
                changes = _change_dns(sound, targets, remove=True, is_dry=self._policy.is_dry)
                checks = self._look(sound, changes, looks, expect_absent=True)
        except ServiceError as error:
            self._errors.append(error)
            self._unknown.add(Step.REMOVE)
            return
        absent = _with_verdict(looks, Verdict.MISSING)
        self._tasks += unusable(Step.REMOVE, keys)
        left = [registration for registration in sound if registration.key not in absent]
        self._tasks += removal_tasks(removals, left, changes, checks, self._policy, tools.clock())
        gone = [removal for removal in removals if removal.registration.key in absent]
        if not gone:
            return
        state = State.DUE
        if not self._policy.is_dry:
            # Close the entries; the selectors stay in the ledger, and are never used again.
            try:
                with tools.lock_account(), tools.open_ledger(for_writing=True) as ledger:
                    ledger.check()
                    ledger.close_keys(
                        {result.registration: result.successor.selector for result in gone}
                    )
                state = State.DONE
            except LedgerError as error:
                self._errors.append(error)
        for result in gone:
            reason = f"replaced by {result.successor.selector}"
            self._tasks.append(Task(Step.REMOVE, state, result.registration, reason))

    def _look(
        self,
        registrations: Sequence[Registration],
        changes: DnsChanges,
        looks: Looks,
        *,
        expect_absent: bool = False,
    ) -> dict[RegistrationKey, Check]:
        """The last check of each record; `looks` gets what is certain.

        Records that were changed just now are checked until all servers have that, for as long as
        the policy says; in a dry run, nothing was changed. Raises ServiceError without a resolver.
        """
        checks: dict[RegistrationKey, Check] = {}
        changed = {key for key, change in changes.items() if change.state is State.DUE}
        waited_for = [registration for registration in registrations if registration.key in changed]
        others = [registration for registration in registrations if registration.key not in changed]
        longest = 0.0 if self._policy.is_dry else self._policy.wait
        for some, wait in ((others, 0.0), (waited_for, longest)):
            if not some:
                continue
            check_policy = CheckPolicy(wait, timedelta(), expect_absent)
            with self._tools.watching(check_policy.wanted) as progress:
                check_publication(
                    some,
                    self._tools.open_source(),
                    check_policy,
                    lambda check: checks.update({check.key: check}),
                    progress=progress,
                    looks=looks,
                )
        return checks

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

    def _recording(self) -> AbstractContextManager[Looks]:
        """Looks that the ledger gets, but for a dry run."""
        if self._policy.is_dry:
            return contextlib.nullcontext(Looks())
        return recording_looks(
            lambda: self._tools.open_ledger(for_writing=True), on_failure=self._errors.append
        )


def _with_verdict(looks: Looks, verdict: Verdict) -> frozenset[RegistrationKey]:
    return frozenset(key for key, latest in looks.latest.items() if latest is verdict)


class _Sent(NamedTuple):
    """A result for each entry that was sent."""

    results: Sequence[Result]
    error: DkimctlError | None = None  # what ended the run early, if anything
    begun_early: Sequence[str] = ()  # names of new keys that sign already, before they were to


def _send(
    specs: Sequence[DomainSpec], ledger: Ledger, tools: Tools, now: datetime, *, refresh: bool
) -> _Sent:
    """Send these entries, each with a selector; `refresh`: also those that are registered.

    To be called under the lock of the account. Raises LedgerError and Interrupted.
    """
    if not specs:
        return _Sent(())
    results: list[Result] = []
    with tools.observing(len(specs)) as observer:
        run = RegistrationEngine(
            ledger,
            Planner(ledger, refresh=refresh, now=now),
            tools.connect,
            observer=observer,
            warn=tools.warn,
            limits=tools.limits,
        )
        for text in run.prepare(specs, now):
            tools.warn(text)
        with tools.stopping(run.stop):
            try:
                run.execute(specs, results.append)
            except DkimctlError as raised:
                if raised is not run.stopped:
                    raise
    error = run.stopped
    if isinstance(error, (Interrupted, LedgerError)):
        raise error
    known = {result.registration.key for result in results}
    left = [outcomes.pending(spec, "it was not sent") for spec in specs if spec.key not in known]
    if error is None and any(result.outcome is Outcome.PENDING for result in results):
        error = ServiceError("the service kept throttling (429)")
    return _Sent([*results, *left], error, run.begun_early)


def _registration_tasks(specs: Sequence[DomainSpec], sent: _Sent) -> Iterator[Task]:
    by_key = {spec.key: spec for spec in specs}
    for registration, outcome, reason in sent.results:
        spec = by_key[registration.key]
        if outcome not in USABLE:
            state = _STATES.get(outcome, State.BLOCKED)
            yield Task(Step.REGISTER, state, registration, f"{outcome}: {reason}")
        elif registration.enable is False and spec.enable:
            text = "it is disabled at the service"
            yield Task(Step.REGISTER, State.BLOCKED, registration, text)
        else:
            is_early = named(registration) in sent.begun_early
            urgency = Urgency.SIGNING if is_early else Urgency.NONE
            yield Task(Step.REGISTER, State.DONE, registration, _replaces(spec), urgency)


def _replaces(spec: DomainSpec) -> str:
    return f"replaces {spec.replaces}, signs from {spec.start_date}"


def _change_dns(
    registrations: Sequence[Registration], targets: Targets, *, remove: bool, is_dry: bool
) -> DnsChanges:
    """Publish the records of these registrations, or `remove` them, where a target covers them."""
    if not registrations:
        return {}
    if isinstance(targets, DkimctlError):
        failed = DnsChange(State.FAILED, targets.message, targets)
        return {registration.key: failed for registration in registrations}
    plan = make_plan(registrations, targets, remove=remove)
    changes = {registration.key: DnsChange(State.BY_HAND) for registration in plan.uncovered}
    for change in plan.changes:
        if change.action is Action.BLOCKED:
            changes[change.registration.key] = DnsChange(State.BLOCKED, change.reason)
    for zone in plan.zones:
        if (error := zone.error) is not None:
            failed = DnsChange(State.FAILED, error.message, error)
            changes |= {registration.key: failed for registration in zone.unread}
        changes |= {result.registration.key: DnsChange(State.DUE) for result in zone.to_apply}

    def note(applied: Applied) -> None:
        if (error := applied.error) is not None:
            key = applied.change.registration.key
            changes[key] = DnsChange(State.FAILED, error.message, error)

    if not is_dry:
        apply_plan(plan, note)
    return changes
