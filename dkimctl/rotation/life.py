"""The life of each key, from its registration to the removal of its record.

Nothing else decides at what stage a key is, and what comes next for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dkim import with_key_len
from dkimctl.dns.verdicts import ACCEPTED, Urgency
from dkimctl.ledger.intents import Intent
from dkimctl.ledger.ledger import DomainKeys, Ledger
from dkimctl.models import (
    NEVER,
    ClosedKey,
    KeyHistory,
    MailStats,
    Registration,
    RegistrationKey,
    utc_time,
)
from dkimctl.names import Selection
from dkimctl.rotation.retirement import Retirement, RetirementPolicy, RetirementStatus, statuses_of
from dkimctl.rotation.successors import (
    FEW_LEFT,
    due_of,
    few_left,
    may_be_due,
    schedules_of,
    selectors_left,
)
from dkimctl.settings.rotation import Policies, RotationSettings

NOT_CHECKED = "unchecked"  # the state of a record that no look has seen anything certain of


class KeyStage(StrEnum):
    """The stages of a key, in order of its life; then those of keys that have none of these."""

    REGISTERED = "registered"
    PUBLISHED = "published"
    SIGNING = "signing"
    SUCCESSOR_REGISTERED = "successor registered"
    SUCCESSOR_PUBLISHED = "successor published"
    SUCCESSOR_SIGNING = "successor signing"  # but not published, as far as is known
    GRACE = "grace period"
    STILL_SIGNING = "still signing"  # past its grace period
    RETIRED = "retired"
    REMOVED = "removed"
    UNANSWERED = "unanswered"  # a request got no answer, so the service may have it
    DISABLED = "disabled"
    TAKEN = "taken"  # it belongs to another account
    UNKNOWN = "unknown"


class NextAction(StrEnum):
    """What comes next for a key."""

    REGISTER = "register successor"
    REGISTER_AGAIN = "register again"
    PUBLISH = "publish"
    WAIT = "wait"
    REMOVE = "remove"
    DECIDE = "decide"  # the user has to; see the note
    NONE = "none"


# Of keys that are in no use, or are not known to be.
NOT_IN_USE = (KeyStage.REMOVED, KeyStage.TAKEN, KeyStage.UNANSWERED)
_BY_RUN = (NextAction.REGISTER, NextAction.REMOVE)
_MOST_ALIKE = 10_000  # keys with different lives that are kept for others


class KeyDates(NamedTuple):
    """The dates of a key's life; None: not known, or not yet."""

    created_at: datetime | None = None
    published_at: datetime | None = None  # since when it is in DNS
    signs_since: datetime | None = None  # or will
    replaced_at: datetime | None = None  # when its successor begins to sign
    removable_at: datetime | None = None  # the end of its grace period
    removed_at: datetime | None = None


class Key(NamedTuple):
    """A key, where it is in its life, and what comes next. None: not known."""

    registration: Registration  # what is known of it, if it was removed or never confirmed
    history: KeyHistory
    stage: KeyStage
    since: datetime | None  # UTC
    action: NextAction
    due: datetime | None  # the date of the action; None: never, or not known
    dates: KeyDates
    urgency: str = ""  # how soon a record that is not published does harm
    note: str = ""
    #: When signing starts if the key is enabled, with the offset of the start date. So is `due` of
    #: a key that waits for a start; all other times are UTC.
    starts_at: datetime | None = None
    age: timedelta | None = None  # of a key in use
    policy: RotationSettings = RotationSettings()
    left: int | None = None  # selectors in the pool of its domain, whose newest key it is
    mail: MailStats | None = None  # by DMARC reports; None: there are none of any domain
    is_not_followed: bool = False  # mail passes with it, and none with its successor

    @property
    def sign_domain(self) -> str:
        return self.registration.sign_domain

    @property
    def selector(self) -> str | None:
        return self.registration.selector

    @property
    def key(self) -> RegistrationKey:
        return self.registration.key

    @property
    def fqdn(self) -> str | None:
        return self.registration.record.fqdn if self.registration.record else None

    @property
    def key_len(self) -> int | None:
        return with_key_len(self.registration).key_len

    @property
    def enable(self) -> bool | None:
        """Whether it is enabled; None also if it is not in use."""
        return None if self.stage in NOT_IN_USE else self.registration.enable is not False

    @property
    def state(self) -> str | None:
        """The verdict of the last look at DNS, or NOT_CHECKED; None: it is not in use."""
        return None if self.stage in NOT_IN_USE else self.history.verdict or NOT_CHECKED

    @property
    def looked_at(self) -> datetime | None:
        """The last look at DNS with a verdict that is certain (UTC)."""
        return self.history.looked_at

    @property
    def is_removed(self) -> bool:
        return self.stage is KeyStage.REMOVED

    @property
    def needs_attention(self) -> bool:
        """Whether it is urgent, or needs a decision of the user."""
        waits = self.action in (NextAction.REGISTER_AGAIN, NextAction.DECIDE)
        return bool(self.urgency) or waits or self.is_last or self.is_not_followed

    @property
    def is_last(self) -> bool:
        """Whether the pool of its domain has selectors for one successor, or none."""
        return self.left is not None and self.left < FEW_LEFT

    def is_overdue(self, now: datetime) -> bool:
        """Whether `rotate run` should have done the next action a lead ago."""
        return self.action in _BY_RUN and self.due is not None and self.due < now - self.policy.lead


def due_first(key: Key) -> tuple[bool, bool, bool, datetime, str, str]:
    """For sorting: urgent keys, then those for people, then by what is due; removed keys last."""
    name = (key.sign_domain, key.selector or "")
    return not key.urgency, not key.needs_attention, key.is_removed, key.due or NEVER, *name


def read_keys(
    ledger: Ledger, selection: Selection, policies: Policies, now: datetime
) -> Iterator[Key]:
    """The selected keys of the ledger, by domain, and in each by the time when they start.

    Also those that may be registered, since their requests got no answer, and removed ones. Their
    records have no values.
    """
    alike: dict[object, Key] = {}
    for domain in ledger.domains(with_values=False):
        known: list[Registration | Intent | ClosedKey] = [*domain.histories]
        known += (*domain.intents, *domain.closed)
        if next(selection.pick(known), None) is not None:
            keys = keys_of(domain, policies, now, alike)
            if domain.no_mail is not None:
                keys = (key._replace(mail=domain.mail.get(key.key, domain.no_mail)) for key in keys)
            yield from sorted(selection.pick(keys), key=_by_start)


def _by_start(key: Key) -> tuple[datetime, str]:
    return key.starts_at or key.dates.created_at or NEVER, key.selector or ""


def keys_of(
    domain: DomainKeys, policies: Policies, now: datetime, alike: dict[object, Key] | None = None
) -> Iterator[Key]:
    """The keys of a signing domain.

    `alike` are keys of other domains, which are alone there, by all that their life depends on:
    hundreds that were registered and seen together have the same. It gets those of this domain.
    """
    settings, (latest, left) = policies.of(domain.sign_domain), selectors_left(domain, policies)
    life: tuple[object, ...] = ()
    if len(domain.histories) == 1 and not (domain.intents or domain.begun):
        [(lone, history)] = domain.histories.items()
        life = (*lone[1:6], lone.is_taken, *lone[7:9], history, id(settings), left)
    if alike is not None and (known := alike.get(life)) is not None:
        yield Key(next(iter(domain.histories)), *known[1:])
    else:
        for key in _registered_keys(domain, settings, policies, now):
            if left is not None and key.registration is latest:
                key = key._replace(left=left)  # noqa: PLW2901
                if key.is_last and not (key.urgency or key.action is NextAction.DECIDE):
                    key = key._replace(note=few_left(left, domain.sign_domain))  # noqa: PLW2901
            # What to do about a successor that is due also depends on the name of the domain.
            is_due = key.action is NextAction.REGISTER and (key.due is None or key.due <= now)
            is_open = is_due or key.action is NextAction.DECIDE or key.is_last
            if alike is not None and life and not is_open:
                if len(alike) >= _MOST_ALIKE:
                    alike.clear()
                alike[life] = key
            yield key
    if domain.intents:
        names = {registration.key for registration in domain.histories}
        names |= {closed.key for closed in domain.closed}
        for intent in domain.intents:
            if intent.key not in names:
                replaces = domain.begun.get(intent.key)
                yield _unanswered_key(intent, replaces)._replace(policy=settings)
    yield from (removed_key(closed)._replace(policy=settings) for closed in domain.closed)


def _registered_keys(
    domain: DomainKeys, settings: RotationSettings, policies: Policies, now: datetime
) -> Iterator[Key]:
    # When the line of each key gets a successor: its newest key decides, once that signs.
    schedules = schedules_of(domain, policies, now)
    due = {each.line[0].third_party: each.due if each.newest else None for each in schedules}
    undecided = {}
    if may_be_due(domain, schedules, now):
        undecided = {
            key.registration: key.reason
            for key in due_of(domain, policies, now)
            if key.spec is None
        }
    retirement = RetirementPolicy(now, now, rotation=policies)
    for status in statuses_of(domain.histories, retirement):
        registration = status.registration
        key = _registered_key(status, settings, now, due.get(registration.third_party))
        if registration in undecided and key.action in (NextAction.REGISTER, NextAction.DECIDE):
            # It gets no successor until the user decides.
            key = key._replace(action=NextAction.DECIDE, note=undecided[registration])
        yield key


def _registered_key(
    status: RetirementStatus,
    settings: RotationSettings,
    now: datetime,
    successor_due: datetime | None,
) -> Key:
    """A registered key, whose line of keys gets a successor at `successor_due`."""
    registration, history, takeover = status.registration, status.history, status.takeover
    starts_at, created_at = registration.starts_at, registration.created_at
    enabled_at = history.enabled_at if registration.signs else None
    signs_since = max(starts_at, enabled_at) if starts_at and enabled_at else None
    replaced_at = removable_at = None
    note = "" if status.retirement is Retirement.CURRENT else status.reason

    stage, action = KeyStage.UNKNOWN, NextAction.NONE
    since = due = None
    if takeover is not None:
        begins, took_over = takeover.begins, takeover.took_over
        replaced_at, removable_at = begins, _after(took_over, settings.grace)
        stage, since = KeyStage.SUCCESSOR_PUBLISHED, takeover.published_at
        action, due = NextAction.WAIT, begins
        if took_over <= now:
            stage, since = KeyStage.GRACE, took_over
            action, due = NextAction.REMOVE, removable_at
            if removable_at and (thawed := settings.frozen_until(max(removable_at, now))):
                due = thawed
            if status.is_over:
                stage, since = KeyStage.RETIRED, removable_at
            elif status.retirement is Retirement.SIGNING and removable_at is not None:
                stage, since = KeyStage.STILL_SIGNING, removable_at
                due, removable_at = _after(removable_at, settings.lead), None
                # In the end somebody has to find what signs with it.
                action = NextAction.DECIDE if status.is_late else NextAction.WAIT
        elif begins <= now:
            stage, since, due = KeyStage.SUCCESSOR_SIGNING, begins, None
        elif took_over == NEVER:
            stage, since = KeyStage.SUCCESSOR_REGISTERED, takeover.successor.created_at
    elif registration.is_taken:
        stage, note = KeyStage.TAKEN, status.reason
    elif not registration.signs:
        stage, since = KeyStage.DISABLED, history.disabled_at
    elif status.retirement is Retirement.UNKNOWN or starts_at is None:
        action, note = NextAction.DECIDE, status.reason
    elif starts_at <= now:
        stage, since = KeyStage.SIGNING, signs_since
        action, due = NextAction.REGISTER, successor_due
    else:
        stage, since = KeyStage.REGISTERED, created_at
        if history.published_at is not None:
            stage, since = KeyStage.PUBLISHED, history.published_at
        action, due = NextAction.WAIT, starts_at

    urgency = Urgency.NONE
    if history.published_at is None and status.needs_record:
        urgency = urgency_of_start(registration, history, now, settings.lead)
        action, due = NextAction.PUBLISH, None  # then it is urgent to publish it
        if starts_at is not None and created_at is not None:
            lead = min(warning_time(settings.lead), starts_at - created_at)
            due = starts_at.astimezone(UTC) - lead
        note = _seen(history)
    dates = KeyDates(created_at, history.published_at, signs_since, replaced_at, removable_at)
    is_used = stage not in NOT_IN_USE
    age = max(now - created_at, timedelta()) if created_at and is_used else None
    return Key(
        registration, history, stage, since, action, due, dates, urgency, note, starts_at, age,
        settings, is_not_followed=status.is_not_followed,
    )  # fmt: skip


def _seen(history: KeyHistory) -> str:
    """What is known of the record of a key that is not published."""
    if history.looked_at is None:
        return "it was never seen published: run `dkimctl check-dns`"
    if history.closed_at is None:
        return f"DNS on {history.looked_at.date()}: {history.verdict}"
    why = "the service's answers show that it signs again"
    if history.signed_at is not None:
        why = f"on {history.signed_at.date()}, `dkimctl verify` saw mail signed with it"
    return f"it was removed from DNS on {history.closed_at.date()}, but {why}"


def removed_key(closed: ClosedKey) -> Key:
    """A key that was retired and removed."""
    note = f"replaced by {closed.replaced_by}" if closed.replaced_by else ""
    return Key(
        Registration(
            closed.sign_domain, closed.selector, None, closed.start_date, closed.third_party
        ),
        KeyHistory(),
        KeyStage.REMOVED,
        closed.closed_at,
        NextAction.NONE,
        None,
        KeyDates(closed.created_at, None, closed.started_at, removed_at=closed.closed_at),
        note=note,
        starts_at=closed.started_at,
    )


def _unanswered_key(intent: Intent, replaces: str | None) -> Key:
    """A key that the service may have; `replaces` is the selector of an older one."""
    sent_at = utc_time(intent.sent_at)
    if replaces is None:
        note = "its request got no answer: register the file of that run again"
    else:
        note = f"it replaces {replaces}; its request got no answer: `dkimctl rotate run` asks again"
    return Key(
        Registration(intent.sign_domain, intent.selector),
        KeyHistory(),
        KeyStage.UNANSWERED,
        sent_at,
        NextAction.REGISTER_AGAIN,
        sent_at,
        KeyDates(),
        note=note,
    )


def _after(time: datetime | None, delta: timedelta) -> datetime | None:
    """None if it is not known, or beyond all dates."""
    return None if time is None or time > NEVER - delta else time.astimezone(UTC) + delta


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
