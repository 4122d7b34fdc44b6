"""Remove the records of retired keys, and prove that they are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.looks import Looks
from dkimctl.dns.verdicts import Check, Verdict
from dkimctl.errors import ServiceError
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.rotation.run.changing import DnsChanges, Targets, change_dns
from dkimctl.rotation.run.looking import look
from dkimctl.rotation.run.report import State, Step, Task
from dkimctl.rotation.run.retiring import Removal
from dkimctl.rotation.run.tools import RunPolicy, Tools


class Removed(NamedTuple):
    """The tasks of the keys that are not gone yet; and those of which all servers said so."""

    tasks: Sequence[Task]
    gone: Sequence[Removal]


def remove_records(
    removals: Sequence[Removal],
    targets: Targets,
    policy: RunPolicy,
    tools: Tools,
    looks: Looks,
) -> Removed:
    """Remove these records, as far as targets cover them, and look at DNS.

    Raises ServiceError without a resolver.
    """
    keys = [with_key_len(one.registration) for one in removals]
    sound = [one for one in keys if not record_fault(one)]
    changes = change_dns(sound, targets, remove=True, is_dry=policy.is_dry)
    checks = look(sound, changes.changed, policy, tools, looks, expect_absent=True)
    absent = {key for key, verdict in looks.latest.items() if verdict is Verdict.MISSING}
    gone = [one for one in removals if one.registration.key in absent]
    left = [one for one in keys if one.key not in absent]
    tasks = _tasks(left, changes, checks, policy)
    return Removed(_overdue(tasks, removals, policy, tools.clock()), gone)


def _overdue(
    tasks: Iterable[Task], removals: Iterable[Removal], policy: RunPolicy, now: datetime
) -> list[Task]:
    """The tasks; a record that is still there a lead after it was due needs attention.

    Where DNS gave no answer, nobody knows whether it is there.
    """
    rotation = policy.rotation
    due = {one.registration.key: one.took_over + rotation.grace for one in removals}

    def judged(task: Task) -> Task:
        since = due[task.registration.key]
        is_known = task.state is State.WAITING and task.error is None
        if not is_known or now <= since + rotation.lead:
            return task
        reason = f"{task.reason}; to be removed since {since:%Y-%m-%d}"
        return task._replace(state=State.BLOCKED, reason=reason)

    return list(map(judged, tasks))


def _tasks(
    left: Sequence[Registration],
    changes: DnsChanges,
    checks: Mapping[RegistrationKey, Check],
    policy: RunPolicy,
) -> Iterator[Task]:
    for one in left:
        if fault := record_fault(one):
            reason = f"its record is not usable: {fault}"
            yield Task(Step.REMOVE, State.BLOCKED, one, reason)
        else:
            yield _task(one, changes, checks[one.key], policy)


def _task(one: Registration, changes: DnsChanges, check: Check, policy: RunPolicy) -> Task:
    seen = f"DNS now: {check.finding.verdict}"
    if policy.is_dry and one.key in changes.changed:
        return Task(Step.REMOVE, State.DUE, one)
    if error := changes.failed.get(one.key):
        return Task(Step.REMOVE, State.FAILED, one, error.message, error=error)
    if reason := changes.blocked.get(one.key):
        return Task(Step.REMOVE, State.BLOCKED, one, reason)
    if check.finding.verdict is Verdict.NO_ANSWER:
        return Task(Step.REMOVE, State.WAITING, one, seen, error=ServiceError(seen))
    state = State.BY_HAND if one.key in changes.uncovered else State.WAITING
    return Task(Step.REMOVE, state, one, seen)
