"""What is known of a key: where it is in its life, what comes next, what DNS has, its problems."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.models.registration import RegistrationKey, key_of

NEVER = datetime.max.replace(tzinfo=UTC)
NOT_CHECKED = "unchecked"  # the state of a record that no look has found anything certain of


class KeyStage(StrEnum):
    """The stages of a key, in order of its life; then those of keys that have none of these."""

    REGISTERED = "registered"
    PUBLISHED = "published"
    SIGNING = "signing"
    SUCCESSOR_REGISTERED = "successor registered"
    SUCCESSOR_PUBLISHED = "successor published"
    SUCCESSOR_SIGNING = "successor signing"  # but not published, as far as is known
    GRACE = "grace period"
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


class KeyDates(NamedTuple):
    """The dates of a key's life (UTC); None: not known, or not yet."""

    created_at: datetime | None = None
    published_at: datetime | None = None  # since when it is in DNS
    starts_at: datetime | None = None
    replaced_at: datetime | None = None  # when its successor begins to sign
    removable_at: datetime | None = None  # the end of its grace period
    removed_at: datetime | None = None


class KeyStatus(NamedTuple):
    """The stage of a key, the next action, and what is known of its record. None: not known."""

    sign_domain: str
    selector: str | None
    stage: KeyStage
    since: datetime | None  # UTC; None: not known
    action: NextAction
    due: datetime | None  # the date of the action; None: never, or not known
    dates: KeyDates
    urgency: str = ""  # how soon a record that is not published does harm
    note: str = ""
    fqdn: str | None = None
    key_len: int | None = None
    age: timedelta | None = None
    starts_at: datetime | None = None  # when signing starts if the key is enabled (UTC)
    enable: bool | None = None
    state: str | None = None  # the verdict of the last look at DNS, or NOT_CHECKED
    looked_at: datetime | None = None  # UTC

    @property
    def is_removed(self) -> bool:
        return self.stage is KeyStage.REMOVED

    @property
    def needs_attention(self) -> bool:
        """Whether it is urgent, or needs a decision of the user."""
        return bool(self.urgency) or self.action in (NextAction.REGISTER_AGAIN, NextAction.DECIDE)

    def is_overdue(self, since: datetime) -> bool:
        """Whether `rotate run` should have done the next action before this time."""
        return self.action in _BY_RUN and self.due is not None and self.due < since


def due_first(status: KeyStatus) -> tuple[bool, bool, bool, datetime, str, str]:
    """For sorting: urgent keys, then those for people, then by what is due; removed keys last."""
    name = (status.sign_domain, status.selector or "")
    due = status.due or NEVER
    return not status.urgency, not status.needs_attention, status.is_removed, due, *name


def by_name(status: KeyStatus) -> tuple[str, datetime, str]:
    """For sorting: by domain, and by start within each."""
    begins = status.starts_at or status.dates.created_at or NEVER
    return status.sign_domain, begins, status.selector or ""


class KeyHistory(NamedTuple):
    """When a key was enabled and seen in DNS (UTC). None: not known."""

    enabled_at: datetime | None = None  # since when at least, perhaps until `disabled_at`
    disabled_at: datetime | None = None
    replaces: str | None = None  # the selector of the key it was made to replace
    published_at: datetime | None = None  # since when all servers have it, at each look
    looked_at: datetime | None = None  # the last look with a verdict that is certain
    verdict: str | None = None


class ClosedKey(NamedTuple):
    """A key that was retired and removed, with its selector (UTC times; None: not known)."""

    sign_domain: str
    selector: str
    third_party: int
    created_at: datetime | None
    started_at: datetime | None  # since when it signed
    replaced_by: str | None  # the selector of its successor
    closed_at: datetime | None

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


class Alarm(NamedTuple):
    """A problem of a subject, such as a domain (UTC times). `told_at`: None until it is told."""

    subject: str
    problem: str
    first_seen: datetime
    looked_at: datetime
    told_at: datetime | None = None
