"""What to change in DNS: the target and zone of each name, and what to do there."""

from __future__ import annotations

import contextlib
import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from dkimctl.dkim import KeyRecordError, parse_tag_list
from dkimctl.dns.check import Checker
from dkimctl.dns.queries import Source
from dkimctl.dns.verdicts import ACCEPTED, Check, Finding, Verdict, compare_values
from dkimctl.dns.wildcards import AddFirst
from dkimctl.errors import DkimctlError, LedgerError, NegativeAnswer, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Registration, RegistrationKey, named
from dkimctl.names import is_glob, is_name, parents
from dkimctl.text import printable
from dkimctl.threads import work_in_parallel

_AT_ONCE = 500  # changes that are begun before it looks whether to stop
_OF_KEY = ACCEPTED | {Verdict.TRUNCATED, Verdict.REVOKED}  # what a retired key's name may have


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
    """What a target has at a name: TXT values, the strings of each joined, or an alias."""

    values: tuple[str, ...] = ()
    ttl: int | None = None  # in seconds; None: there is no TXT record
    alias: str = ""  # the target of its CNAME
    delegated: str = ""  # the zone below the target's own that the name is delegated to
    #: For the target: the data of each TXT record, if the values do not tell how it is stored.
    wire: tuple[bytes, ...] = ()
    redirected: str = ""  # the owner of the DNAME that makes the alias


class Change(NamedTuple):
    """What to do at the name of a registration's record, and what became of it."""

    registration: Registration
    action: Action
    before: NameState = NameState()
    value: str | None = None  # to write; None: remove all TXT records
    ttl: int | None = None  # of the record to write
    target: Target | None = None
    zone: str = ""  # "": not known
    reason: str = ""  # why it is not, or cannot be, made
    #: Records, as lines of a master file, without which others would lose what a wildcard has.
    add_first: tuple[str, ...] = ()
    error: DkimctlError | None = None  # why its zone could not be read, or why it was not made
    alias_end: str = ""  # where its name leads, an alias, and where the record is to change
    is_applied: bool = False  # it is in DNS, at the server that took it
    check: Check | None = None  # what DNS has after it, or what is kept, if it was asked

    @property
    def key(self) -> RegistrationKey:
        return self.registration.key

    @property
    def fqdn(self) -> str:
        record = self.registration.record
        return record.fqdn if record else ""

    @property
    def name(self) -> str:
        """Where its record is to change."""
        return self.alias_end or self.fqdn

    @property
    def full_reason(self) -> str:
        """With the records to add first."""
        return f"{self.reason}: {'; '.join(self.add_first)}" if self.add_first else self.reason

    @property
    def place(self) -> tuple[str, str]:
        """Its zone, and the label of its target; "" where there is none."""
        return self.zone, self.target.label if self.target else ""

    def made(self) -> Change:
        return self._replace(is_applied=True)

    def failed(self, error: DkimctlError) -> Change:
        return self._replace(error=error, reason=error.message)


class Access(NamedTuple):
    """Whether a zone can be read and written, and why not; None: only a change would tell."""

    readable: bool | None
    writable: bool | None
    reason: str = ""
    hint: str = ""


class Target(Protocol):
    """A DNS server or provider, as the config file names it.

    Names and zones are without trailing dot. Several threads use a target at the same time, each
    for a zone of its own; `find_zones` is called before.
    """

    label: str  # its name in messages
    ttl: int  # of new records, in seconds
    zones: Sequence[str]  # those it is for: names or globs; none: all that it has

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """The zone of the target that each name is in, or None. Raises DkimctlError."""

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """What the target has at each name. Raises DkimctlError."""

    def find_shadowed(self, zone: str, names: Sequence[str]) -> AddFirst:
        """See wildcards.find_shadowed; called after `read`. Raises DkimctlError."""

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Change]:
        """Make the changes (CREATE, REPLACE, REMOVE), each only if `before` still holds.

        Yields each as made or failed, in any order; raises no DkimctlError. Each name has its old
        or its new state at any moment.
        """

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """Whether the TXT records there can be read and written. May raise DkimctlError."""


def make_plan(
    registrations: Iterable[Registration], targets: Sequence[Target],
    open_source: Callable[[], Source], known: Callable[[], Iterable[Registration]], *,
    remove: bool = False, replace_foreign: bool = False, allow_shadowing: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Change]:  # fmt: skip
    """Read what DNS has at the names of these registrations, and plan what to change, by zone.

    Each has a sound record. `remove`: their records are to go. `replace_foreign`: also replace TXT
    records that are not DKIM key records, and other keys where aliases lead. `allow_shadowing`:
    also create what takes the answers of a wildcard from other names. `progress` gets, in this
    thread, how many of the registrations are planned, at least five times a second.

    What is an alias, or in no zone of a target, is looked up in DNS: a record that is not as wanted
    is planned where its aliases lead. `known` gives all registrations, whose records stay there.
    """
    plan: list[Change] = []

    def plan_zone(job: ZoneRegistrations) -> Iterator[list[Change]]:
        (target, zone, error), of_zone = job
        try:
            if error is not None:
                raise error
            states = target.read(zone, list(dict(of_zone)))
        except DkimctlError as failure:
            unread = (Change(item, Action.UNREAD, target=target, zone=zone) for _, item in of_zone)
            yield [change.failed(failure) for change in unread]
            return
        counts = Counter(name for name, _ in of_zone)
        changes = []
        for name, item in of_zone:
            value, state = item.record.value if item.record else "", states[name]
            action, reason = decide(value, state, remove=remove, replace_foreign=replace_foreign)
            if counts[name] > 1:
                same = "another registration has a record of the same name"
                action, reason = Action.BLOCKED, same
            wanted = None if remove else value
            changes.append(Change(item, action, state, wanted, target.ttl, target, zone, reason))
        yield changes if allow_shadowing else _guard_wildcards(target, zone, changes)

    def plan_at_names(registrations: Iterable[Registration]) -> list[Change]:
        jobs, uncovered = by_target_zone(registrations, targets)
        changes: list[Change] = []

        def add(of_zone: list[Change]) -> None:
            changes.extend(of_zone)
            progress(len(plan) + len(changes))

        work_in_parallel(jobs, plan_zone, add, wait=lambda: add([]))
        return changes + [Change(registration, Action.UNCOVERED) for registration in uncovered]

    def look(changes: Iterable[Change]) -> Iterator[Check]:
        with contextlib.suppress(ServiceError):  # there is no resolver
            checker = Checker(open_source(), remove)
            yield from checker.check(change.registration for change in changes)

    led: list[Change] = []
    for change in plan_at_names(registrations):
        (led if change.before.alias or change.action is Action.UNCOVERED else plan).append(change)
    if not targets:  # nor does any cover where an alias leads
        plan += led
    elif led:
        checks: list[Check] = []
        work_in_parallel([led], look, checks.append, wait=lambda: progress(len(plan)))
        by_key = {check.key: check for check in checks}
        led = [_behind_alias(change, by_key.get(change.key), remove=remove) for change in led]
        plan += [change for change in led if not change.alias_end]
        moved = {change.key: change for change in led if change.alias_end}
        at_ends = plan_at_names(
            each.registration._replace(record=record._replace(fqdn=each.alias_end))
            for each in moved.values()
            if (record := each.registration.record) is not None
        )
        plan += _at_alias_ends(at_ends, moved, known, replace_foreign=replace_foreign)
    return sorted(plan, key=lambda change: (change.action is Action.UNCOVERED, change.place))


def _behind_alias(change: Change, check: Check | None, *, remove: bool) -> Change:
    """What there is to do if the name is an alias, as DNS tells; `alias_end`: do it there."""
    alias = end = change.before.alias
    if check is not None and check.alias:
        alias, end = check.alias, check.alias_end
    verdict, reason, _ = check.finding if check else Finding(Verdict.NO_ANSWER)
    if change.action is Action.UNCOVERED and verdict is Verdict.NO_ANSWER:
        end = ""  # it may be that of a wildcard
    if not alias or (verdict is Verdict.MISSING and not (end or change.before.alias)):
        return change  # a wildcard's alias is not one of the name
    if verdict is (Verdict.MISSING if remove else Verdict.PUBLISHED):
        return change._replace(action=Action.KEEP, reason="", check=check)
    text = change.reason or f"there is a CNAME, to {printable(alias)}"
    text += f"; DNS now: {verdict} ({reason})" if reason else f"; DNS now: {verdict}"
    if end:
        text += f"; {'remove' if remove else 'publish'} the record at {printable(end)}"
    # What is to be removed by hand may wait.
    action = Action.UNCOVERED if remove else change.action
    return change._replace(action=action, reason=text, alias_end=end if is_name(end) else "")


def _at_alias_ends(
    at_ends: Iterable[Change], moved: Mapping[RegistrationKey, Change],
    known: Callable[[], Iterable[Registration]], *, replace_foreign: bool,
) -> Iterator[Change]:  # fmt: skip
    """What a plan has where aliases lead, for the registrations that have them.

    Another key there may be in use: who makes an alias need not own the name that it leads to.
    """
    owners = {
        text: each
        for each in (known() if moved else ())
        if each.record is not None
        for text in (each.record.fqdn.lower(), each.record.value)
    }
    for planned in at_ends:
        change = moved[planned.key]
        end, action, reason = change.alias_end, planned.action, planned.reason
        if action is Action.UNCOVERED:
            yield change
            continue
        for text in (end.lower(), *planned.before.values):
            owner = owners.get(text)
            if action in CHANGING and owner is not None and owner.key != change.key:
                action, reason = Action.BLOCKED, f"the record of {named(owner)} is there"
        if action is Action.REPLACE and not replace_foreign:
            wanted, there = planned.value or "", planned.before.values
            if not all(compare_values(wanted, [text]).verdict in _OF_KEY for text in there):
                action, reason = Action.BLOCKED, "another key is there; --replace replaces it"
        if action in CHANGING or action is Action.BLOCKED:
            where = f"at {printable(end)}, where its alias (CNAME) leads"
            reason = f"{where}: {reason}" if reason else where
        yield planned._replace(
            registration=change.registration, alias_end=end, action=action, reason=reason
        )


_WITHOUT_ASKING = "`dkimctl publish --allow-wildcard-shadowing` publishes without asking"


def _guard_wildcards(target: Target, zone: str, changes: Sequence[Change]) -> list[Change]:
    """The changes, but nothing is created that would take what a wildcard answers from others.

    Nor without an answer whether it would: a key can wait for the next run, a website cannot.
    """
    new = [change.fqdn.lower() for change in changes if change.action is Action.CREATE]
    error: DkimctlError | None = None
    try:
        shadowed = target.find_shadowed(zone, new) if new else {}
    except DkimctlError as failure:
        error, shadowed = failure, dict.fromkeys(new)
        error.hint = "; ".join(filter(None, (failure.hint, _WITHOUT_ASKING)))

    def guarded(change: Change) -> Change:
        name = change.fqdn.lower()
        if change.action is not Action.CREATE or name not in shadowed:
            return change
        if add_first := shadowed[name]:
            host = add_first[0].partition(". ")[0]
            reason = f"this record would end what a wildcard answers for {host}; first add"
            return change._replace(action=Action.BLOCKED, reason=reason, add_first=add_first)
        what = f"{target.label} does not say whether a wildcard answers for names above {name}"
        unknown = ServiceError(what, hint=f"run the same command again; {_WITHOUT_ASKING}")
        return change._replace(action=Action.UNREAD).failed(error or unknown)

    return list(map(guarded, changes))


def apply_plan(
    plan: Iterable[Change], emit: Callable[[Change], None],
    open_ledger: Callable[[], Ledger], on_failure: Callable[[LedgerError], None], *,
    is_stopped: Callable[[], bool] = lambda: False, wait: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Make the changes, several zones at a time; emits each as made or failed, in this thread.

    The ledger, opened for writing, gets the events, or `on_failure` why it does not. After
    `is_stopped` no further changes are begun; what became of those that were is emitted. `wait` is
    called five times a second while there is nothing to emit.
    """
    zones: dict[tuple[Target, str], list[Change]] = {}
    for change in plan:
        if change.target is not None and change.action in CHANGING:
            zones.setdefault((change.target, change.zone), []).append(change)

    def apply_zone(job: tuple[tuple[Target, str], list[Change]]) -> Iterator[Change]:
        (target, zone), changes = job
        for at in range(0, len(changes), _AT_ONCE):
            if is_stopped():
                return
            yield from target.apply(zone, changes[at : at + _AT_ONCE])

    written: dict[RegistrationKey, str] = {}

    def add(change: Change) -> None:
        if change.is_applied and change.value is not None:
            written[change.key] = " at ".join(filter(None, (change.alias_end, change.place[1])))
        emit(change)

    try:
        work_in_parallel(zones.items(), apply_zone, add, wait=wait)
    finally:
        if written:
            try:
                with open_ledger() as ledger:
                    ledger.note_published(written)
            except LedgerError as error:
                on_failure(error)


def decide(
    value: str, state: NameState, *, remove: bool, replace_foreign: bool
) -> tuple[Action, str]:
    """What to do at a name with this registered value; why, if it is blocked. See `make_plan`."""
    alias, zone, owner = map(printable, (state.alias, state.delegated, state.redirected))
    if owner:
        return Action.BLOCKED, f"a DNAME at {owner} redirects the name to {alias}"
    if alias:
        return Action.BLOCKED, f"there is a CNAME, to {alias}"
    if zone:
        return Action.BLOCKED, f"the zone delegates {zone} to other servers"
    if not state.values:
        return (Action.KEEP if remove else Action.CREATE), ""
    if remove:
        if {compare_values(value, [item]).verdict for item in state.values} <= _OF_KEY:
            return Action.REMOVE, ""
        return Action.BLOCKED, "a TXT record there is not that of the retired key"
    if compare_values(value, state.values).verdict is Verdict.PUBLISHED:
        return Action.KEEP, ""
    if not (replace_foreign or all(map(is_key_record, state.values))):
        return Action.BLOCKED, "a TXT record there is not a DKIM key record; --replace replaces it"
    return Action.REPLACE, ""


def is_key_record(value: str) -> bool:
    """Whether a TXT value is a DKIM key record, or was meant to be one."""
    # Copying may have left quotation marks in it, or cut its end.
    if re.match(r'[\s"\\]*v\s*=\s*DKIM1\b', value):
        return True
    try:
        tags = parse_tag_list(value, tolerant=True)
    except KeyRecordError:
        return False
    return "p" in tags and tags.get("v", "DKIM1") == "DKIM1"


class TargetZone(NamedTuple):
    """A zone of a target. `error`: why it cannot be used; `zone` may be "" then."""

    target: Target
    zone: str
    error: DkimctlError | None = None


#: A zone, and its registrations, each with the name of its record.
ZoneRegistrations = tuple[TargetZone, list[tuple[str, Registration]]]


def by_target_zone(
    registrations: Iterable[Registration], targets: Sequence[Target]
) -> tuple[list[ZoneRegistrations], list[Registration]]:
    """The registrations in each zone, and those in no zone of a target."""
    named = [(item.record.fqdn.lower(), item) for item in registrations if item.record is not None]
    target_zones = find_target_zones([name for name, _ in named], targets)
    grouped: dict[tuple[Target, str, str], ZoneRegistrations] = {}
    uncovered = []
    for name, registration in named:
        if (target_zone := target_zones[name]) is None:
            uncovered.append(registration)
            continue
        target, zone, error = target_zone
        key = target, zone, error.message if error else ""
        grouped.setdefault(key, (target_zone, []))[1].append((name, registration))
    return list(grouped.values()), uncovered


def find_target_zones(
    names: Sequence[str], targets: Sequence[Target]
) -> Mapping[str, TargetZone | None]:
    """The target and zone of each name; None: in no zone of any target.

    The longest zone name that contains it decides, of all targets; else the first with a glob for
    its zone, or without `zones`. If one gives no answer, no other is tried: it may be it.
    """
    by_zone = {zone.lower(): target for target in reversed(targets) for zone in target.zones}
    others = [
        _Rule(target, globs=tuple(zone.lower() for zone in filter(is_glob, target.zones)))
        for target in targets
        if not target.zones or any(map(is_glob, target.zones))
    ]

    def candidates(name: str) -> Iterator[_Rule]:
        """The rules that may give a name its zone, in the order in which they apply."""
        above = list(parents(name))
        yield from (_Rule(by_zone[zone], named=zone) for zone in above if zone in by_zone)
        yield from (rule for rule in others if any(map(rule.means, above)))

    rules = {name: candidates(name) for name in names}
    found: dict[str, TargetZone | None] = dict.fromkeys(names)
    left = list(found)
    while left:
        # Each target is asked once for all its names.
        asked: dict[Target, list[tuple[str, _Rule]]] = {}
        for name in left:
            if rule := next(rules[name], None):
                asked.setdefault(rule.target, []).append((name, rule))
        left = []
        for target, of_target in asked.items():
            try:
                zones = target.find_zones([name for name, _ in of_target])
                found |= {name: rule.target_zone(zones[name]) for name, rule in of_target}
            except DkimctlError as error:
                found |= {name: TargetZone(target, rule.named, error) for name, rule in of_target}
            left += [name for name, _ in of_target if found[name] is None]
    return found


class _Rule(NamedTuple):
    """A way in which the config file gives zones to a target: by name, by glob, or all of them."""

    target: Target
    named: str = ""
    globs: tuple[str, ...] = ()

    def target_zone(self, zone: str | None) -> TargetZone | None:
        """Where a name is that is in this zone of the target; None: not by this rule."""
        name = (zone or "").lower()
        if zone is not None and (name == self.named if self.named else self.means(name)):
            return TargetZone(self.target, zone)
        if not self.named or name.endswith(f".{self.named}"):
            return None  # a zone of its own
        hint = "correct `zones` or the server of `dns` in the config file"
        what = f"{self.target.label} has no zone {printable(self.named)}"
        return TargetZone(self.target, self.named, NegativeAnswer(what, hint=hint))

    def means(self, zone: str) -> bool:
        """Whether a glob is for this zone, or there is none."""
        return not self.globs or any(fnmatch.fnmatchcase(zone.lower(), it) for it in self.globs)


def outcome_of(change: Change, state: NameState, error: DkimctlError) -> Change:
    """What became of a change; `error` is for a name that has what it had before."""
    if is_done(state, change):
        return change.made()
    return change.failed(error if is_same(state, change.before) else changed_error(change))


def is_done(state: NameState, change: Change) -> bool:
    """Whether this is the state after the change."""
    wanted = () if change.value is None else (change.value,)
    return state.values == wanted and not (state.alias or state.delegated)


def is_same(state: NameState, other: NameState) -> bool:
    """Whether both have the same records, with any TTL and in any order."""
    is_led_alike = (state.alias, state.delegated) == (other.alias, other.delegated)
    return is_led_alike and sorted(state.values) == sorted(other.values)


def changed_error(change: Change) -> DkimctlError:
    """For a name that has not what the plan was made from."""
    what = f"DNS has changed at {printable(change.name)} since it was read"
    return NegativeAnswer(what, hint="run the same command again")
