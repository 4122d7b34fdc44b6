"""What to change in DNS, by zone: the target of each name, and what to do there."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from dkimctl.dkim import KeyRecordError, parse_tag_list
from dkimctl.dns.verdicts import ACCEPTED, Check, Verdict, compare_values
from dkimctl.errors import DkimctlError, NegativeAnswer
from dkimctl.models import DnsRecord, Registration, RegistrationKey
from dkimctl.names import is_glob, parents
from dkimctl.text import printable
from dkimctl.threads import work_in_parallel

_AT_ONCE = 500  # changes that are begun before it looks whether to stop
_OF_KEY = ACCEPTED | {Verdict.TRUNCATED, Verdict.REVOKED}  # what a retired key's name may have
# A key record, even if copying has left quotation marks in it or cut its end.
_KEY_RECORD = r'[\s"\\]*v\s*=\s*DKIM1\b'

NamedRegistrations: TypeAlias = list[tuple[str, Registration]]  # each with the name of its record


class TargetZone(NamedTuple):
    """A zone of a target. `error`: why it cannot be used; `zone` may be "" then."""

    target: Target
    zone: str
    error: DkimctlError | None = None


class ZonePlan(NamedTuple):
    """The changes to a zone, in the order of the registrations.

    `error`: why the zone could not be read; there are no changes then, `unread` are the
    registrations that could not be planned, and `zone` may be "".
    """

    target: Target
    zone: str
    changes: Sequence[Change]
    error: DkimctlError | None = None
    unread: Sequence[Registration] = ()

    @property
    def to_apply(self) -> list[Change]:
        """The changes that are to be made."""
        return [change for change in self.changes if change.action in CHANGING]


class PublicationPlan(NamedTuple):
    """The plan of each zone; `uncovered` are registrations in no zone of any target."""

    zones: Sequence[ZonePlan]
    uncovered: Sequence[Registration]

    @property
    def changes(self) -> list[Change]:
        """All changes, also those that are not to be made."""
        return [change for zone in self.zones for change in zone.changes]


def make_plan(
    registrations: Iterable[Registration],
    targets: Sequence[ConfiguredTarget],
    *,
    remove: bool = False,
    replace_foreign: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> PublicationPlan:
    """Read what DNS has at the names of these registrations, and plan what to change.

    Each has a sound record. `remove`: their records are to go. `replace_foreign`: also replace TXT
    records that are not DKIM key records. `progress` is told, in this thread, how many of the
    registrations are planned, at least five times a second.
    """
    jobs, uncovered = by_target_zone(registrations, targets)
    plans: list[ZonePlan] = []
    planned = 0

    def plan_zone(job: tuple[TargetZone, NamedRegistrations]) -> list[ZonePlan]:
        (target, zone, error), named = job
        states: Mapping[str, NameState] = {}
        if error is None:
            try:
                states = target.read(zone, list(dict(named)))
            except DkimctlError as failure:
                error = failure
        if error is not None:
            return [ZonePlan(target, zone, [], error, [registration for _, registration in named])]
        counts = Counter(name for name, _ in named)
        changes = []
        for name, item in named:
            record, state = item.record or DnsRecord("", "", ""), states[name]
            action, reason = decide(
                record.value, state, remove=remove, replace_foreign=replace_foreign
            )
            if counts[name] > 1:
                action = Action.BLOCKED
                reason = "another registration has a record of the same name"
            value = None if remove else record.value
            changes.append(Change(item, record, action, state, value, target.ttl, reason))
        return [ZonePlan(target, zone, changes)]

    def add(plan: ZonePlan) -> None:
        nonlocal planned
        plans.append(plan)
        planned += len(plan.changes) + len(plan.unread)
        progress(planned)

    work_in_parallel(jobs, plan_zone, add, wait=lambda: progress(planned))
    return PublicationPlan(
        sorted(plans, key=lambda plan: (plan.zone, plan.target.label)), uncovered
    )


def apply_plan(
    plan: PublicationPlan,
    emit: Callable[[Applied], None],
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    wait: Callable[[], None] = lambda: None,
) -> None:
    """Make the changes, several zones at a time; emits what became of each, in this thread.

    After `is_stopped` no further changes are begun; what became of those that were is emitted.
    `wait` is called five times a second while there is nothing to emit.
    """

    def changes_of(zone: ZonePlan) -> Iterator[Applied]:
        changes = zone.to_apply
        for at in range(0, len(changes), _AT_ONCE):
            if is_stopped():
                return
            yield from zone.target.apply(zone.zone, changes[at : at + _AT_ONCE])

    work_in_parallel((zone for zone in plan.zones if zone.to_apply), changes_of, emit, wait=wait)


class PlanItem(NamedTuple):
    """One registration of a plan. `zone` and `target`, a label, are "" where there is none.

    `change` is None without a target, or if the zone could not be read. `is_applied`: the change
    was made; `error`: why it was not, or why the zone was not read. `check` is what DNS has after
    that, if it was asked.
    """

    registration: Registration
    step: Action
    zone: str = ""
    target: str = ""
    change: Change | None = None
    is_applied: bool = False
    error: DkimctlError | None = None
    check: Check | None = None

    @property
    def key(self) -> RegistrationKey:
        return self.registration.key

    @property
    def fqdn(self) -> str:
        record = self.registration.record
        return record.fqdn if record else ""

    @property
    def reason(self) -> str:
        """Why the change is not, or cannot be, made; or ""."""
        if self.error is not None:
            return self.error.message
        return self.change.reason if self.change else ""


def items_of(plan: PublicationPlan) -> Iterator[PlanItem]:
    """The items of a plan, by zone."""
    for zone in plan.zones:
        place = zone.zone, zone.target.label
        for change in zone.changes:
            yield PlanItem(change.registration, change.action, *place, change)
        for registration in zone.unread:
            yield PlanItem(registration, Action.UNREAD, *place, error=zone.error)
    for registration in plan.uncovered:
        yield PlanItem(registration, Action.UNCOVERED)


def with_outcome(item: PlanItem, applied: Mapping[RegistrationKey, Applied]) -> PlanItem:
    """The item, with what became of its change."""
    outcome = applied.get(item.key)
    if outcome is None:
        return item
    return item._replace(is_applied=outcome.error is None, error=outcome.error)


def decide(
    value: str, state: NameState, *, remove: bool, replace_foreign: bool
) -> tuple[Action, str]:
    """What to do at a name, by what DNS has there; and the reason for what is blocked.

    `value` is the registered one. `remove`: its record is to go. `replace_foreign`: also replace
    TXT records that are not DKIM key records.
    """
    alias, zone = printable(state.alias), printable(state.delegated)
    if state.redirected:
        owner = printable(state.redirected)
        return Action.BLOCKED, f"a DNAME at {owner} redirects the name to {alias}"
    if alias:
        return Action.BLOCKED, f"there is a CNAME, to {alias}"
    if zone:
        return Action.BLOCKED, f"the zone delegates {zone} to other servers"
    if remove:
        if not state.values:
            return Action.KEEP, ""
        if {compare_values(value, [item]).verdict for item in state.values} <= _OF_KEY:
            return Action.REMOVE, ""
        return Action.BLOCKED, "a TXT record there is not that of the retired key"
    if not state.values:
        return Action.CREATE, ""
    if compare_values(value, state.values).verdict is Verdict.PUBLISHED:
        return Action.KEEP, ""
    if not (replace_foreign or all(map(is_key_record, state.values))):
        return Action.BLOCKED, "a TXT record there is not a DKIM key record; --replace replaces it"
    return Action.REPLACE, ""


def is_key_record(value: str) -> bool:
    """Whether a TXT value is a DKIM key record, or was meant to be one."""
    if re.match(_KEY_RECORD, value):
        return True
    try:
        tags = parse_tag_list(value, tolerant=True)
    except KeyRecordError:
        return False
    return "p" in tags and tags.get("v", "DKIM1") == "DKIM1"


def by_target_zone(
    registrations: Iterable[Registration], targets: Sequence[ConfiguredTarget]
) -> tuple[list[tuple[TargetZone, NamedRegistrations]], list[Registration]]:
    """The registrations in each zone, with their names, and those in no zone of a target."""
    named = [
        (registration.record.fqdn.lower(), registration)
        for registration in registrations
        if registration.record is not None
    ]
    target_zones = find_target_zones([name for name, _ in named], targets)
    grouped: dict[tuple[int, str, str], tuple[TargetZone, NamedRegistrations]] = {}
    uncovered = []
    for name, registration in named:
        target_zone = target_zones[name]
        if target_zone is None:
            uncovered.append(registration)
            continue
        reason = target_zone.error.message if target_zone.error else ""
        key = (id(target_zone.target), target_zone.zone, reason)
        grouped.setdefault(key, (target_zone, []))[1].append((name, registration))
    return list(grouped.values()), uncovered


def find_target_zones(
    names: Sequence[str], targets: Sequence[ConfiguredTarget]
) -> Mapping[str, TargetZone | None]:
    """The target and zone of each name; None: in no zone of any target.

    The longest zone name that contains it decides, of all targets; else the first target with a
    glob for its zone, or without `zones`. If a target gives no answer, no other is tried: it might
    be the one.
    """
    by_zone = {zone.lower(): target.target for target in reversed(targets) for zone in target.zones}
    others = [
        _Rule(target.target, globs=globs)
        for target in targets
        if (globs := tuple(zone.lower() for zone in target.zones if is_glob(zone)))
        or not target.zones
    ]

    def candidates(name: str) -> Iterator[_Rule]:
        """The rules that may give a name its zone, in the order in which they apply."""
        for parent in parents(name):
            if parent in by_zone:
                yield _Rule(by_zone[parent], named=parent)
        yield from (
            rule for rule in others if not rule.globs or any(map(rule.means, parents(name)))
        )

    rules = {name: candidates(name) for name in names}
    target_zones: dict[str, TargetZone | None] = dict.fromkeys(names)
    zones: dict[int, dict[str, str | None]] = {}  # the zones of names, by target
    left = list(target_zones)
    while left:
        asked: dict[int, list[tuple[str, _Rule]]] = {}
        for name in left:
            if rule := next(rules[name], None):
                asked.setdefault(id(rule.target), []).append((name, rule))
        answered = [
            answer
            for key, item in asked.items()
            for answer in _ask(item, zones.setdefault(key, {}))
        ]
        target_zones.update(answered)
        left = [name for name, target_zone in answered if target_zone is None]
    return target_zones


def _ask(
    asked: Sequence[tuple[str, _Rule]], known: dict[str, str | None]
) -> Iterator[tuple[str, TargetZone | None]]:
    """Ask the target of all these rules once for the zone of each name that is not `known`."""
    target = asked[0][1].target
    try:
        if unknown := [name for name, _ in asked if name not in known]:
            known.update(target.find_zones(unknown))
    except DkimctlError as error:
        yield from ((name, TargetZone(target, rule.named, error)) for name, rule in asked)
    else:
        yield from ((name, rule.target_zone(known.get(name))) for name, rule in asked)


class _Rule(NamedTuple):
    """A way in which the config file gives zones to a target: by name, by glob, or all of them."""

    target: Target
    named: str = ""
    globs: tuple[str, ...] = ()

    def target_zone(self, zone: str | None) -> TargetZone | None:
        """Where a name is that is in this zone of the target; None: not by this rule."""
        if not self.named:
            if zone is None or (self.globs and not self.means(zone)):
                return None
            return TargetZone(self.target, zone)
        if zone is not None and zone.lower() == self.named:
            return TargetZone(self.target, zone)
        if zone is not None and zone.lower().endswith(f".{self.named}"):
            return None  # a zone of its own
        error = NegativeAnswer(
            f"{self.target.label} has no zone {printable(self.named)}",
            hint="correct `zones` or the server of `dns` in the config file",
        )
        return TargetZone(self.target, self.named, error)

    def means(self, zone: str) -> bool:
        """Whether a glob is for this zone."""
        return any(fnmatch.fnmatchcase(zone.lower(), glob) for glob in self.globs)


class Action(StrEnum):
    """What a plan does at the name of a registration, or why it does nothing."""

    CREATE = "create"
    REPLACE = "replace"
    REMOVE = "remove"
    KEEP = "keep"  # it is as wanted: published, or, of a record to remove, gone
    BLOCKED = "blocked"  # something stands in the way; see the reason
    UNCOVERED = "uncovered"  # by any target
    UNREAD = "unread"  # its zone could not be read


CHANGING = frozenset((Action.CREATE, Action.REPLACE, Action.REMOVE))


class NameState(NamedTuple):
    """What a target has at a name: TXT values, with their TTL in seconds, or an alias (CNAME).

    The strings of each TXT record are joined. `ttl` is None, and `alias` "", without such a record.
    `redirected` is the owner of the DNAME that makes the alias, or "".
    `delegated` is the zone below the target's own that the name is delegated to, or "". `wire` is
    for the target: the data of each TXT record, if joined strings do not tell how it is stored.
    """

    values: tuple[str, ...] = ()
    ttl: int | None = None
    alias: str = ""
    delegated: str = ""
    wire: tuple[bytes, ...] = ()
    redirected: str = ""


class Change(NamedTuple):
    """The change at the name of a record; `value` is None to remove all TXT records there."""

    registration: Registration
    record: DnsRecord
    action: Action
    before: NameState
    value: str | None
    ttl: int
    reason: str = ""


class Applied(NamedTuple):
    """What became of a change. `error` is None if it is in DNS, at the server that took it."""

    change: Change
    error: DkimctlError | None = None


def outcome_of(change: Change, state: NameState, error: DkimctlError) -> Applied:
    """What became of a change; `error` is for a name that has what it had before."""
    if is_done(state, change):
        return Applied(change)
    return Applied(change, error if is_same(state, change.before) else changed_error(change))


def is_done(state: NameState, change: Change) -> bool:
    """Whether this is the state after the change."""
    wanted = () if change.value is None else (change.value,)
    return state.values == wanted and not (state.alias or state.delegated)


def is_same(name_state: NameState, other: NameState) -> bool:
    """Whether both have the same records, with any TTL and in any order."""
    return (sorted(name_state.values), name_state.alias, name_state.delegated) == (
        sorted(other.values), other.alias, other.delegated,
    )  # fmt: skip


def changed_error(change: Change) -> DkimctlError:
    """For a name that has not what the plan was made from."""
    return NegativeAnswer(
        f"DNS has changed at {printable(change.record.fqdn)} since it was read",
        hint="run the same command again",
    )


class Access(NamedTuple):
    """Whether a zone can be read and written, and why not; None: only a change would tell."""

    readable: bool | None
    writable: bool | None
    reason: str = ""
    hint: str = ""


class Target(Protocol):
    """A DNS server or provider, as the config file names it.

    `label` names it in messages; `ttl`, in seconds, is that of new records. Names and zones are
    without trailing dot. Several threads use a target at the same time, each for a zone of its own;
    `find_zones` is called before.
    """

    label: str
    ttl: int

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """The zone of the target that each name is in, or None. Raises DkimctlError."""

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """What the target has at each name. Raises DkimctlError."""

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        """Make the changes (CREATE, REPLACE, REMOVE), each only if `before` still holds.

        Yields what became of each one, in any order; raises no DkimctlError. Each name has its old
        or its new state at any moment.
        """

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """Whether the TXT records there can be read and written. May raise DkimctlError."""


class ConfiguredTarget(NamedTuple):
    """A target, and the zones it is for: names or globs; none: all zones that it has."""

    zones: tuple[str, ...]
    target: Target
