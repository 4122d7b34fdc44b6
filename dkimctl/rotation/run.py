"""`rotate run`: does what is due, in order, with what a caller passes in.

First the service, under the lock of the account: successors that are due are registered, and those
of keys past their grace period are asked for once more. Then DNS: keys are published and looked
at, and records of retired keys removed. What one step cannot do does not keep the next from being
done, and each looks before it acts, so a run may be killed anywhere.

Each step plans first: tasks that are DUE. A dry run ends there, and looks only where its plan
depends on DNS; another one carries the plan out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.check import CheckPolicy, check_publication
from dkimctl.dns.verdicts import Check, Looks, Urgency, Verdict, recording_looks
from dkimctl.errors import ClocksDiffer, DkimctlError, Interrupted, LedgerError, ServiceError
from dkimctl.ledger.ledger import DomainKeys, Ledger
from dkimctl.models import (
    NO_REPORTS_FOR,
    USABLE,
    ClosedKey,
    DomainSpec,
    KeyHistory,
    Outcome,
    Registration,
    RegistrationKey,
    Result,
    named,
)
from dkimctl.names import Selection
from dkimctl.publishing.plan import CHANGING, Action, Change, Target, apply_plan, make_plan
from dkimctl.publishing.pools import assign_selectors
from dkimctl.publishing.targets import try_new_keys
from dkimctl.registration import outcomes
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.preflight import Planner, clock_fault
from dkimctl.rotation.due import (
    FailingMail,
    Report,
    RunPolicy,
    State,
    Step,
    Task,
    Tools,
    publication_tasks,
    removal_tasks,
)
from dkimctl.rotation.life import removed_key
from dkimctl.rotation.retirement import (
    Histories,
    KnownKeys,
    Retirement,
    RetirementPolicy,
    RetirementStatus,
    is_newer,
    known_keys,
    why_it_stays,
)
from dkimctl.rotation.successors import FEW_LEFT, DueKeys, few_left, find_due, spec_of
from dkimctl.text import few

_MAX_ROUNDS = 3  # of selectors that another account has
_STATES = {Outcome.PENDING: State.DUE, Outcome.FAILED: State.FAILED, Outcome.UNKNOWN: State.FAILED}


class RotationRun:
    """Does what is due for the selected domains; a dry run only plans."""

    def __init__(self, selection: Selection, policy: RunPolicy, tools: Tools) -> None:
        self._selection = selection
        self._policy = policy
        self._tools = tools
        self._tasks: list[Task] = []
        self._errors: list[DkimctlError] = []
        self._postponed = self._not_asked = 0
        self._limits: Sequence[str] = ()
        self._unknown: set[Step] = set()
        self._targets: Sequence[Target] = ()
        self._targets_error: DkimctlError | None = None  # why none of them can be used
        self._begun_early: list[str] = []  # names of new keys that sign already
        self._clocks_differ = False  # the service's and ours
        self._failing: list[FailingMail] = []
        self._unreported: list[str] = []

    @property
    def report(self) -> Report:
        """What was done and found so far."""
        return Report(
            self._tasks, self._errors, self._postponed, frozenset(self._unknown), self._limits,
            self._not_asked, self._failing, self._unreported,
        )  # fmt: skip

    def execute(self) -> Report:
        """Raises LedgerError if the ledger cannot be read, and Interrupted."""
        domains = self._read()
        known = self._known(domains)
        due = find_due(domains, self._selection, self._policy.rotation, self._tools.clock())
        self._read_mail(domains)
        del domains  # there may be 100,000
        statuses = self._statuses(known, self._tools.clock())
        over = [
            status
            for status in statuses
            if status.is_over and status.successors and status.retirement is not Retirement.WAITING
        ]
        # By key past its grace period, and successor of one: why the former has to stay, or "".
        answers: Mapping[RegistrationKey, str] = {}
        try:
            if not self._policy.is_dry:
                with self._tools.open_ledger(for_writing=True) as ledger:
                    ledger.note_policy(str(self._policy.rotation))
            answers = self._ask_service(over, known, due)
        except LedgerError as error:  # it may be read nevertheless, such as on a full disk
            self._end_service(error)
        confirmed = {key for key, why in answers.items() if not why}
        for status in over:
            old, keys = status.registration.key, [successor.key for successor in status.successors]
            is_confirmed = not confirmed.isdisjoint(keys)
            if is_confirmed and old in confirmed:
                continue
            state, text = State.DUE, "the service has not confirmed its successor "
            text += keys[0].selector
            why = answers.get(old if is_confirmed else keys[0])
            if why and Step.REMOVE not in self._unknown:
                state, text = State.BLOCKED, f"{why}; so it stays"
                if not is_confirmed:
                    text = f"its successor {keys[0].selector}: {why}; so this key stays"
            self._tasks.append(Task(Step.REMOVE, state, status.registration, text))
        if not self._policy.is_dry:  # it has changed
            known = self._known(self._read())
            statuses = self._statuses(known, self._tools.clock())
        self._work_on_dns(known, statuses, confirmed)
        return self.report

    def _read_mail(self, domains: Sequence[DomainKeys]) -> None:
        """Note the keys whose mail fails by DMARC reports, and domains without any."""
        since = self._tools.clock() - NO_REPORTS_FOR
        for domain in domains:
            picked = [*self._selection.pick(domain.histories)]
            keys: list[Registration | ClosedKey] = [*picked, *self._selection.pick(domain.closed)]
            for key in keys:
                mail = domain.mail.get(key.key)
                if mail and mail.is_failing:
                    ledger = self._tools.open_ledger(for_writing=False)
                    self._failing.append(FailingMail(
                        key.sign_domain, key.key.selector, mail.passed, mail.failed,
                        ledger.networks(key.key, failed=True), isinstance(key, ClosedKey),
                    ))  # fmt: skip
            if domain.no_mail is not None and not domain.no_mail.is_reported:
                begun = (key.signs and key.starts_at and key.starts_at <= since for key in picked)
                self._unreported += [domain.sign_domain] if any(begun) else []

    def _ask_service(
        self, over: Sequence[RetirementStatus], known: KnownKeys, due: DueKeys
    ) -> Mapping[RegistrationKey, str]:
        """Register the successors that are due, and refresh keys past the grace period, and theirs.

        If there are none, or the clocks differ, nothing is locked, and nothing has an effect.
        Raises LedgerError, Interrupted.
        """
        tools, policies = self._tools, self._policy.rotation
        ledger = tools.open_ledger(for_writing=False)
        self._limits = due.limits
        # At a service that each run asks for its time, one entry more, and that of its successor,
        # is cheap for keys of some weeks. Later it is left to answers and mail.
        unanswered = {intent.key for intent in ledger.intents()}  # by a run that was killed
        closed = {}
        for key in self._selection.pick(ledger.closed_keys()):
            policy = policies.of(key.key.sign_domain)
            lately = tools.clock() - policy.grace - policy.lead
            is_recent = key.closed_at is not None and key.closed_at > lately
            if (is_recent or key.key in unanswered) and not policy.frozen_until(tools.clock()):
                closed[key.key] = key
        is_known = self._agreed_time(is_needed=bool(due.specs or over)) is not None
        self._note_pools(due)
        if self._policy.is_dry or not is_known or not (due.specs or over or closed):
            self._note_undecided(due)
            self._postponed = len(due.postponed)
            for spec in self._assigned(due.specs, ledger):
                registration = outcomes.pending(spec).registration
                self._tasks.append(Task(Step.REGISTER, State.DUE, registration, _replaces(spec)))
            asked = (key for status in over for key in (status.registration, *status.successors))
            return {registration.key: "" for registration in asked} if is_known else {}
        with tools.lock_account(), tools.open_ledger(for_writing=True) as ledger:
            # It may have waited for long, and the clock may have been set meanwhile.
            if self._agreed_time(is_needed=True) is None:
                return {}
            now = tools.clock()
            self._register_due(ledger, now)
            self._note_spent_pools(due, ledger, now)
            if self._unknown:
                return {}
            removed = [
                RetirementStatus(
                    removed_key(key).registration, KeyHistory(), Retirement.RETIRED, "",
                    [each for each in ledger.of_domain(name) if each.selector == key.replaced_by],
                )
                for (name, _), key in closed.items()
            ]  # fmt: skip
            answers = self._refresh([*over, *removed], known.histories, ledger, now)
            if closed:  # those that do not sign again, by the answers, are closed as before
                known = self._known(ledger.domains())
                ledger.close_keys({
                    status.registration: closed[status.registration.key].replaced_by
                    for status in self._statuses(known, now)
                    if status.registration.key in closed
                    and not (status.needs_record or status.registration.is_taken)
                })  # fmt: skip
            return answers

    def _agreed_time(self, *, is_needed: bool) -> datetime | None:
        """The earlier of our time and the service's; None if they differ, or that is not known.

        Why is an error of the run, unless it only is not known, and nothing `is_needed`.
        """
        try:
            services = self._tools.ask_time()
            fault: DkimctlError | None
            fault = clock_fault(self._tools.clock(), services, "nothing is registered or removed")
            if fault is None and services is not None:
                return min(self._tools.clock(), services)
        except DkimctlError as error:
            fault = error
        self._clocks_differ |= isinstance(fault, ClocksDiffer)
        if fault is not None and (is_needed or self._clocks_differ):
            self._end_service(fault)
        return None

    def _end_service(self, error: DkimctlError) -> None:
        self._errors.append(error)
        self._unknown |= {Step.REGISTER, Step.REMOVE}

    def _note_undecided(self, due: DueKeys) -> None:
        self._tasks += [
            Task(Step.REGISTER, State.BLOCKED, key.registration, key.reason)
            for key in due.undecided
        ]

    def _note_pools(self, due: DueKeys) -> None:
        """Tell in time of pools that will have no selector for a successor.

        Domains that get one in this run are left to `_note_spent_pools`.
        """
        two = [each.sign_domain for each, left in due.low.items() if left == FEW_LEFT]
        if two:
            self._tools.warn(f"{FEW_LEFT} selectors are left in the pool of {few(two)}")
        registered = {spec.sign_domain for spec in due.specs}
        self._note_low(due.low, {each.sign_domain for each in due.low} - registered)

    def _note_spent_pools(self, due: DueKeys, ledger: Ledger, now: datetime) -> None:
        """Tell what is left of pools that had one selector, after a successor was registered."""
        low = {each.sign_domain for each, left in due.low.items() if left < FEW_LEFT}
        spent = low & {spec.sign_domain for spec in due.specs}
        spent -= {  # the task says why there is no successor
            task.registration.sign_domain
            for task in self._tasks
            if task.step is Step.REGISTER and task.state is not State.DONE
        }
        if spent:
            known, policies = ledger.domains(with_values=False), self._policy.rotation
            self._note_low(find_due(known, self._selection, policies, now).low, spent)

    def _note_low(self, low: Mapping[Registration, int], domains: Container[str]) -> None:
        self._tasks += [
            Task(Step.REGISTER, State.BLOCKED, each, few_left(left, each.sign_domain))
            for each, left in low.items()
            if left < FEW_LEFT and each.sign_domain in domains
        ]

    def _assigned(self, specs: Sequence[DomainSpec], ledger: Ledger) -> list[DomainSpec]:
        """The specs, with the next delegated selectors of pools; tasks say why some get none."""
        self._open_targets()
        if self._targets_error is not None:
            return [*specs]
        kept = []
        for spec, error in assign_selectors(
            specs, ledger, self._policy.rotation.pool_of, self._targets, self._tools.open_source,
            allow_shadowing=self._policy.allow_shadowing,
        ):  # fmt: skip
            if error is None:
                kept.append(spec)
                continue
            state = State.FAILED if isinstance(error, ServiceError) else State.BLOCKED
            registration = outcomes.pending(spec._replace(selector=spec.replaces)).registration
            text = f"no successor is registered: {error.message}"
            self._tasks.append(Task(Step.REGISTER, state, registration, text, error=error))
        return kept

    def _register_due(self, ledger: Ledger, now: datetime) -> None:
        """Register what is due; where another account has a selector, another one is tried."""
        policies = self._policy.rotation
        due = find_due(ledger.domains(with_values=False), self._selection, policies, now)
        self._note_undecided(due)
        specs = self._publishable(due, ledger)
        for rounds_left in reversed(range(_MAX_ROUNDS)):
            by_key = {spec.key: spec for spec in specs}
            results = self._send(specs, ledger, now, refresh=False)
            taken = {
                result.registration.key for result in results if result.outcome is Outcome.TAKEN
            }
            specs = []
            if taken and rounds_left and not self._unknown:
                lines = {(by_key[key].sign_domain, by_key[key].default) for key in taken}
                again = find_due(ledger.domains(with_values=False), self._selection, policies, now)
                specs = self._assigned([
                    spec
                    for spec in (*again.specs, *again.postponed)
                    if (spec.sign_domain, spec.default) in lines
                ], ledger)  # fmt: skip
            for result in results:
                key = result.registration.key
                if not (specs and key in taken):
                    self._tasks.append(self._registration_task(by_key[key], result))
            if not specs:
                return

    def _publishable(self, due: DueKeys, ledger: Ledger) -> list[DomainSpec]:
        """Those that are due, unless their DNS target cannot be written: then others are tried."""
        self._open_targets()
        writable, wanted, left = list[DomainSpec](), len(due.specs), [*due.specs, *due.postponed]
        size = wanted
        while left and len(writable) < wanted:
            specs, left = left[:size], left[size:]
            size *= 2  # so that few rounds wait for servers that are down
            for spec, registration, why in try_new_keys(
                self._assigned(specs, ledger), self._targets
            ):
                if (fault := why or self._targets_error) is None:
                    writable.append(spec)
                    continue
                text = f"not registered, since it could not be published: {fault.message}"
                task = Task(Step.REGISTER, State.FAILED, registration, text, error=fault)
                self._tasks.append(task)
        self._postponed = len(left) + len(writable[wanted:])
        return writable[:wanted]

    def _open_targets(self) -> None:
        if self._targets or self._targets_error is not None:
            return
        try:
            self._targets = self._tools.open_targets()
        except DkimctlError as error:
            self._errors.append(error)
            self._targets_error = error

    def _registration_task(self, spec: DomainSpec, result: Result) -> Task:
        registration, outcome, reason, _ = result
        if outcome not in USABLE:
            state = _STATES.get(outcome, State.BLOCKED)
            return Task(Step.REGISTER, state, registration, f"{outcome}: {reason}")
        if registration.enable is False and spec.enable:
            text = "it is disabled at the service"
            return Task(Step.REGISTER, State.BLOCKED, registration, text)
        is_early = named(registration) in self._begun_early
        urgency = Urgency.SIGNING if is_early else Urgency.NONE
        return Task(Step.REGISTER, State.DONE, registration, _replaces(spec), urgency)

    def _refresh(
        self, over: Iterable[RetirementStatus], histories: Histories, ledger: Ledger, now: datetime
    ) -> Mapping[RegistrationKey, str]:
        """Send entries for these keys and their successors; the ledger gets the answers.

        Why each does not count, or "". The service answers with what it has (409, interface 7.3).
        A successor that it no longer has is registered anew, and starts as late as any; an old key
        would be, too, and so is disabled then.
        """
        asked, successors_of = dict[RegistrationKey, Registration](), {}
        for status in over:
            successors_of[status.registration.key] = status.successors
            asked |= {each.key: each for each in (status.registration, *status.successors)}
        specs = []
        for key, registration in asked.items():
            policy = self._policy.rotation.of(key.sign_domain)
            spec = spec_of(registration, registration.selector, policy, now)
            replaces = histories.get(key, KeyHistory()).replaces
            specs.append(spec._replace(replaces=replaces, enable=key not in successors_of))
        answers = dict.fromkeys(asked, "")
        for answer, outcome, reason, _ in self._send(specs, ledger, now, refresh=True):
            successors = successors_of.get(answer.key)
            if outcome not in USABLE:
                answers[answer.key] = f"{outcome}: {reason}"
            elif answer.enable is False and successors is None:
                answers[answer.key] = "it is disabled at the service"
            elif answer.code != "409" or answer.record != asked[answer.key].record:
                answers[answer.key] = "the service has another key for it now"
            elif successors and not any(is_newer(successor, answer) for successor in successors):
                start = answer.start_date or answer.regist_date
                answers[answer.key] = f"the service signs with it again, from {start}"
        return answers

    def _send(
        self, specs: Sequence[DomainSpec], ledger: Ledger, now: datetime, *, refresh: bool
    ) -> list[Result]:
        """Send these entries, under the lock of the account: a result for each.

        `refresh`: also those that are registered. What ends it early is noted, but raises
        LedgerError and Interrupted.
        """
        if not specs:
            return []
        tools, results = self._tools, list[Result]()
        with tools.observing(len(specs)) as observer:
            run = RegistrationEngine(
                ledger,
                Planner(ledger, refresh=refresh, now=now),
                tools.connect,
                observer=observer,
                warn=tools.warn,
                limits=tools.limits,
            )
            for text, _ in run.prepare(specs, now):
                tools.warn(text)
            with tools.stopping(run.stop):
                try:
                    results.extend(run.execute(specs))
                except DkimctlError as raised:
                    if raised is not run.stopped:
                        raise
        error = run.stopped
        if isinstance(error, (Interrupted, LedgerError)):
            raise error
        if error is None and any(result.outcome is Outcome.PENDING for result in results):
            error = ServiceError("the service kept throttling (429)")
        if error is not None:
            self._end_service(error)
        self._begun_early += run.begun_early
        sent = {result.registration.key for result in results}
        left = (outcomes.pending(spec, "it was not sent") for spec in specs if spec.key not in sent)
        return [*results, *left]

    def _work_on_dns(
        self,
        known: KnownKeys,
        statuses: Sequence[RetirementStatus],
        confirmed: AbstractSet[RegistrationKey],
    ) -> None:
        """Publish and look; remove the records of retired keys whose successors are confirmed.

        A dry run relies on the last look where that has seen a record published, but for successors
        of keys that could be removed.
        """
        tools, policies = self._tools, self._policy.rotation
        self._open_targets()
        asked = needed = [status for status in statuses if status.needs_record]
        if self._policy.is_dry:
            deciding = {each for status in statuses if status.is_over for each in status.successors}
            asked = [
                status
                for status in needed
                if status.history.published_at is None
                or status.history.verdict != Verdict.PUBLISHED
                or status.registration in deciding
            ]
            self._not_asked = len(needed) - len(asked)
        changes = self._change_dns(Step.PUBLISH, (status.registration for status in asked))
        checks, looks = self._look(Step.PUBLISH, changes)
        published = _with_verdict(looks, Verdict.PUBLISHED)
        self._tasks += publication_tasks(
            changes.values(),
            checks,
            published,
            known.histories if changes else {},
            policies,
            tools.clock(),
        )
        if looks is None:
            return
        # What is confirmed is not due before both clocks say so, which may have been set meanwhile.
        agreed = self._agreed_time(is_needed=True) if confirmed else None
        now, reliable = agreed or tools.clock(), confirmed & published if agreed else frozenset()
        # The successor of each retired key that can go now, and since when it is due.
        removals: dict[Registration, str | None] = {}
        due: dict[RegistrationKey, datetime] = {}
        # Most keys have no other beside them that could have replaced them.
        several = [histories for histories in known.domains if len(histories) > 1]
        for status in self._statuses(known._replace(domains=several).after(looks, now), now):
            registration, retirement = status.registration, status.retirement
            sure = [each.selector for each in status.successors if each.key in reliable]
            is_due = retirement in (Retirement.DUE, Retirement.WAITING) and status.is_over
            if retirement is Retirement.SIGNING or status.is_not_followed:
                state = State.BLOCKED if status.is_late or status.is_not_followed else State.WAITING
                reason = why_it_stays(status, tools.open_ledger(for_writing=False))
                self._tasks.append(Task(Step.REMOVE, state, registration, reason))
            elif is_due or retirement is Retirement.UNKNOWN:  # it cannot be removed yet
                self._tasks.append(Task(Step.REMOVE, State.WAITING, registration, status.reason))
            elif (
                retirement is Retirement.RETIRED
                and status.takeover is not None
                and sure
                and registration.key in confirmed
            ):
                removals[registration] = sure[0]
                grace = policies.of(registration.key.sign_domain).grace
                due[registration.key] = status.takeover.took_over + grace
        if removals:
            self._remove(removals, due)

    def _remove(
        self, removals: Mapping[Registration, str | None], due: Mapping[RegistrationKey, datetime]
    ) -> None:
        """Remove these records, as far as targets cover them, and prove that they are gone."""
        tools = self._tools
        changes = self._change_dns(Step.REMOVE, removals)
        checks, looks = self._look(Step.REMOVE, changes)
        if looks is None:
            return
        absent = _with_verdict(looks, Verdict.MISSING)
        left = [change for key, change in changes.items() if key not in absent]
        self._tasks += removal_tasks(left, checks, due, self._policy.rotation, tools.clock())
        gone = {old: successor for old, successor in removals.items() if old.key in absent}
        state = State.DUE
        if gone and not self._policy.is_dry:
            # Close the entries; the selectors stay in the ledger, and are never used again.
            try:
                with tools.lock_account(), tools.open_ledger(for_writing=True) as ledger:
                    ledger.check()
                    ledger.close_keys(gone)
                state = State.DONE
            except LedgerError as error:
                self._errors.append(error)
        self._tasks += [
            Task(Step.REMOVE, state, registration, f"replaced by {successor}")
            for registration, successor in gone.items()
        ]

    def _change_dns(
        self, step: Step, registrations: Iterable[Registration]
    ) -> dict[RegistrationKey, Task]:
        """Publish these records, or remove them, where a target covers them.

        The task of each sound one: DONE if it was written (DUE in a dry run), and WAITING if DNS
        has what it should have.
        """
        tasks: dict[RegistrationKey, Task] = {}

        def note(
            registration: Registration,
            state: State,
            reason: str = "",
            error: DkimctlError | None = None,
        ) -> None:
            reason = error.message if error else reason
            tasks[registration.key] = Task(step, state, registration, reason, error=error)

        for registration in map(with_key_len, registrations):
            if fault := record_fault(registration):  # it is neither published nor removed
                reason = f"its record is not usable: {fault}"
                self._tasks.append(Task(step, State.BLOCKED, registration, reason))
            else:
                note(registration, State.WAITING)
        sound = [task.registration for task in tasks.values()]
        plan = make_plan(
            sound, self._targets, self._tools.open_source,
            lambda: self._tools.open_ledger(for_writing=False).ours(),
            remove=step is Step.REMOVE,
            allow_shadowing=self._policy.allow_shadowing,
        )  # fmt: skip
        states = {
            Action.UNCOVERED: State.FAILED if self._targets_error else State.BY_HAND,
            Action.UNREAD: State.FAILED,
            Action.BLOCKED: State.BLOCKED,
            **dict.fromkeys(CHANGING, State.DUE if self._policy.is_dry else State.DONE),
        }
        for change in plan:
            if change.action in states:
                error = change.error or self._targets_error
                note(change.registration, states[change.action], change.full_reason, error)
                tasks[change.key] = tasks[change.key]._replace(alias_end=change.alias_end)
            elif change.check is not None:
                tasks[change.key] = tasks[change.key]._replace(check=change.check)

        def note_failure(change: Change) -> None:
            if change.error is not None:
                note(change.registration, State.FAILED, error=change.error)

        if not self._policy.is_dry:
            self._tools.open_ledger(for_writing=False)  # fails if the run's lock was lost
            apply_plan(
                plan, note_failure, lambda: self._tools.open_ledger(for_writing=True),
                self._errors.append,
            )  # fmt: skip
        return tasks

    def _look(
        self, step: Step, changes: Mapping[RegistrationKey, Task]
    ) -> tuple[Mapping[RegistrationKey, Check], Looks | None]:
        """The last check of each record, and what is certain, which the ledger gets.

        Records that were written just now are checked until all servers have that, for as long as
        the policy says. Without a resolver, which is noted, there are no looks.
        """
        checks: dict[RegistrationKey, Check] = {}
        recording: AbstractContextManager[Looks] = contextlib.nullcontext(Looks())
        if not self._policy.is_dry:
            recording = recording_looks(
                lambda: self._tools.open_ledger(for_writing=True), on_failure=self._errors.append
            )
        try:
            with recording as looks:
                looks.restarts = self._clocks_differ
                for task in changes.values():
                    if task.check is not None:  # the plan has just asked
                        checks[task.registration.key] = task.check
                        looks.add(task.check)
                for is_written, wait in ((False, 0.0), (True, self._policy.wait)):
                    registrations = [
                        task.registration
                        for task in changes.values()
                        if (task.state is State.DONE) is is_written and task.check is None
                    ]
                    if not registrations:
                        continue
                    policy = CheckPolicy(wait, timedelta(), expect_absent=step is Step.REMOVE)
                    with self._tools.watching(policy.wanted) as progress:
                        source = self._tools.open_source()
                        for check in check_publication(
                            registrations, source, policy, progress=progress, looks=looks
                        ):
                            checks[check.key] = check
        except ServiceError as error:
            self._errors.append(error)
            self._unknown |= {step, Step.REMOVE}
            return {}, None
        return checks, looks

    def _read(self) -> list[DomainKeys]:
        return [*self._tools.open_ledger(for_writing=False).domains()]

    def _known(self, domains: Iterable[DomainKeys]) -> KnownKeys:
        """All keys of the selected domains, also if a spec file names some of them alone."""
        return known_keys(domains, self._selection, whole_domains=True)

    def _statuses(self, known: KnownKeys, now: datetime) -> list[RetirementStatus]:
        return known.statuses(RetirementPolicy(
            now, now, rotation=self._policy.rotation, despite_reports=self._policy.despite_reports
        ))  # fmt: skip


def _with_verdict(looks: Looks | None, verdict: Verdict) -> frozenset[RegistrationKey]:
    seen = looks.latest.items() if looks is not None else ()
    return frozenset(key for key, latest in seen if latest is verdict)


def _replaces(spec: DomainSpec) -> str:
    return f"replaces {spec.replaces}, signs from {spec.start_date}"
