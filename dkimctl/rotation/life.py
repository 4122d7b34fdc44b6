"""The life of each key, from its registration to the removal of its record.

Nothing else decides at what stage a key is, and what comes next for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import with_key_len
from dkimctl.dns.verdicts import ACCEPTED, Urgency
from dkimctl.models import (
    NEVER,
    NOT_CHECKED,
    NOT_IN_USE,
    ClosedKey,
    KeyDates,
    KeyHistory,
    KeyStage,
    KeyStatus,
    NextAction,
    Registration,
    RegistrationKey,
    by_signing_domain,
    due_first,
    key_of,
    utc_time,
)
from dkimctl.rotation.retirement import (
    Histories,
    KnownKeys,
    RetirementPolicy,
    RetirementStatus,
    Stage,
    Takeover,
    read_known_keys,
)
from dkimctl.rotation.successors import find_due, lines_of, newest_of
from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.ledger.intents import Intent
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.names import Selection

_MAX_AGE_OF_LOOK = timedelta(days=1)  # that of `rotate --retired --no-check`


class _Position(NamedTuple):
    """A stage, since when, and what comes next."""

    stage: KeyStage
    since: datetime | None
    action: NextAction = NextAction.NONE
    due: datetime | None = None


def read_keys(
    ledger: Ledger, selection: Selection, settings: RotationSettings, now: datetime
) -> list[KeyStatus]:
    """The status of each selected key of the ledger, what is due first.

    Also of keys that may be registered, since their requests got no answer.
    """
    known = read_known_keys(ledger, selection)
    held = find_due(ledger, selection, settings, now).held
    reasons = {one.registration.key: one.reason for one in held}
    keys = []
    for status in find_stages(known, settings, now):
        reason = reasons.get(key_of(status.sign_domain, status.selector))
        if reason and status.action in (NextAction.REGISTER, NextAction.DECIDE):
            # It gets no successor until the user decides.
            status = status._replace(action=NextAction.DECIDE, note=reason)  # noqa: PLW2901
        keys.append(status)
    begun = ledger.begun_successors()
    registered = {one.key for one in known.registrations}
    keys += [
        _stage_of_unanswered(intent, begun.get(intent.key))
        for intent in selection.pick(ledger.intents())
        if intent.key not in registered
    ]
    keys += map(stage_of_closed, selection.pick(ledger.closed_keys()))
    return sorted(keys, key=due_first)


def read_domain_keys(
    ledger: Ledger, domains: Collection[str], settings: RotationSettings, now: datetime
) -> Iterator[tuple[KeyStatus, Registration | None]]:
    """The keys of these domains, which are in lower case; without registration if removed."""
    registered = [one for domain in sorted(domains) for one in ledger.of_domain(domain)]
    histories = ledger.histories() if registered else {}
    known = KnownKeys(registered, frozenset(registered), histories)
    by_key = {one.key: one for one in registered}
    for closed in ledger.closed_keys():
        if closed.key.sign_domain in domains and closed.key not in by_key:
            yield stage_of_closed(closed), None
    for status in find_stages(known, settings, now):
        yield status, by_key[key_of(status.sign_domain, status.selector)]


def find_stages(known: KnownKeys, settings: RotationSettings, now: datetime) -> Iterator[KeyStatus]:
    """The status of each selected registration."""
    # When the line of each key gets a successor: its newest key decides, once that signs.
    due: dict[RegistrationKey, datetime] = {}
    for of_domain in by_signing_domain(known.registrations).values():
        for line in lines_of(of_domain):
            newest = newest_of(line)
            at = None if newest is None else _after(newest.created_at, settings.max_age)
            if at is not None:
                at = max(at, *(one.starts_at or at for one in line))
                due |= {one.key: at for one in line}
    policy = RetirementPolicy(now, now - _MAX_AGE_OF_LOOK, grace=settings.grace)
    for status in known.statuses(policy):
        yield _stage_of(status, known.histories, settings, now, due.get(status.registration.key))


def _stage_of(
    status: RetirementStatus,
    histories: Histories,
    settings: RotationSettings,
    now: datetime,
    successor_due: datetime | None,
) -> KeyStatus:
    """The stage of a registered key, whose line of keys gets a successor at `successor_due`."""
    one, takeover = status.registration, status.takeover
    history = histories.get(one.key, KeyHistory())
    signs_since = None
    if one.starts_at is not None and history.enabled_at is not None:
        signs_since = max(one.starts_at, history.enabled_at)
    dates = KeyDates(one.created_at, history.published_at, signs_since if one.signs else None)
    if takeover is not None:
        removable_at = _after(takeover.took_over, settings.grace)
        dates = dates._replace(replaced_at=takeover.begins, removable_at=removable_at)
        position = _replaced(takeover, removable_at, now)
    else:
        position = _current(status, history, signs_since, now, successor_due)
    note = "" if status.stage is Stage.CURRENT else status.reason
    if position.stage in (KeyStage.TAKEN, KeyStage.UNKNOWN):
        note = status.reason
    urgency = Urgency.NONE
    if history.published_at is None and status.needs_record:
        urgency = urgency_of_start(one, history, now, settings.lead)
        due = None  # then it is urgent to publish it
        if one.starts_at is not None and one.created_at is not None:
            due = max(one.starts_at - warning_time(settings.lead), one.created_at)
        position = position._replace(action=NextAction.PUBLISH, due=due)
        note = "it was never seen published: run `dkimctl check-dns`"
        if history.looked_at is not None:
            note = f"DNS on {history.looked_at.date()}: {history.verdict}"
    record, created_at = one.record, one.created_at
    is_used = position.stage not in NOT_IN_USE
    return KeyStatus(
        one.sign_domain,
        one.selector,
        *position,
        dates,
        urgency,
        note,
        fqdn=record.fqdn if record else None,
        key_len=with_key_len(one).key_len,
        age=max(now - created_at, timedelta()) if is_used and created_at is not None else None,
        starts_at=one.starts_at,
        enable=one.enable is not False if is_used else None,
        state=(history.verdict or NOT_CHECKED) if is_used else None,
        looked_at=history.looked_at if is_used else None,
    )


def _current(
    status: RetirementStatus,
    history: KeyHistory,
    signs_since: datetime | None,
    now: datetime,
    successor_due: datetime | None,
) -> _Position:
    """Where a key is that nothing replaces."""
    one = status.registration
    if one.is_taken:
        return _Position(KeyStage.TAKEN, None)
    if not one.signs:
        return _Position(KeyStage.DISABLED, history.disabled_at)
    if status.stage is Stage.UNKNOWN or one.starts_at is None:
        return _Position(KeyStage.UNKNOWN, None, NextAction.DECIDE)
    if one.starts_at <= now:
        return _Position(KeyStage.SIGNING, signs_since, NextAction.REGISTER, successor_due)
    if history.published_at is None:
        return _Position(KeyStage.REGISTERED, one.created_at, NextAction.WAIT, one.starts_at)
    return _Position(KeyStage.PUBLISHED, history.published_at, NextAction.WAIT, one.starts_at)


def _replaced(takeover: Takeover, removable_at: datetime | None, now: datetime) -> _Position:
    """Where a key is that has a successor."""
    begins, took_over = takeover.begins, takeover.took_over
    if takeover.stage is Stage.RETIRED:
        return _Position(KeyStage.RETIRED, removable_at, NextAction.REMOVE, removable_at)
    if took_over <= now:
        return _Position(KeyStage.GRACE, took_over, NextAction.REMOVE, removable_at)
    if begins <= now:
        return _Position(KeyStage.SUCCESSOR_SIGNING, begins, NextAction.WAIT)
    if took_over == NEVER:
        created_at = takeover.successor.created_at
        return _Position(KeyStage.SUCCESSOR_REGISTERED, created_at, NextAction.WAIT, begins)
    return _Position(KeyStage.SUCCESSOR_PUBLISHED, takeover.published_at, NextAction.WAIT, begins)


def stage_of_closed(closed: ClosedKey) -> KeyStatus:
    """The stage of a key that was retired and removed."""
    dates = KeyDates(closed.created_at, None, closed.started_at, removed_at=closed.closed_at)
    position = _Position(KeyStage.REMOVED, closed.closed_at)
    note = f"replaced by {closed.replaced_by}" if closed.replaced_by else ""
    return KeyStatus(
        closed.sign_domain, closed.selector, *position, dates, note=note, starts_at=dates.starts_at
    )


def _stage_of_unanswered(intent: Intent, replaces: str | None) -> KeyStatus:
    """The stage of a key that the service may have; `replaces` is the selector of an older one."""
    sent_at = utc_time(intent.sent_at)
    position = _Position(KeyStage.UNANSWERED, sent_at, NextAction.REGISTER_AGAIN, sent_at)
    if replaces is None:
        note = "its request got no answer: register the file of that run again"
    else:
        note = f"it replaces {replaces}; its request got no answer: `dkimctl rotate run` asks again"
    return KeyStatus(intent.sign_domain, intent.selector, *position, KeyDates(), note=note)


def _after(time: datetime | None, delta: timedelta) -> datetime | None:
    """None if it is not known, or beyond all dates."""
    return None if time is None or time > NEVER - delta else time + delta


def warning_time(lead: timedelta) -> timedelta:
    """How long before its start a key that is not published becomes urgent."""
    return lead / 2


def urgency_of_start(
    registration: Registration, history: KeyHistory, now: datetime, lead: timedelta
) -> Urgency:
    """The urgency of a key that signs or will, unless verifiers accepted it at the last look.

    A key without a date signs, as far as is known.
    """
    if history.published_at is not None or history.verdict in ACCEPTED:
        return Urgency.NONE
    left = (registration.starts_at or now) - now
    if left <= timedelta():
        return Urgency.SIGNING
    return Urgency.SOON if left <= warning_time(lead) else Urgency.NONE
