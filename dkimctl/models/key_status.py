"""Where a key is in its life, and what comes next."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class KeyStage(StrEnum):
    """The stages of a key, in order of its life; then those of keys that have none of these.

    `UNANSWERED`: a request to register it got no answer, so the service may have it.
    """

    REGISTERED = "registered"
    PUBLISHED = "published"
    SIGNING = "signing"
    SUCCESSOR_REGISTERED = "successor registered"
    SUCCESSOR_PUBLISHED = "successor published"
    SUCCESSOR_SIGNING = "successor signing"  # but not published, as far as is known
    GRACE = "grace period"
    RETIRED = "retired"
    REMOVED = "removed"
    UNANSWERED = "unanswered"
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


_FOR_PEOPLE = (NextAction.REGISTER_AGAIN, NextAction.DECIDE)


class KeyDates(NamedTuple):
    """The dates of a key's life (UTC); None: not known, or not yet.

    `published_at`: since when it is in DNS. `replaced_at`: when its successor begins to sign.
    `removable_at`: the end of its grace period.
    """

    created_at: datetime | None = None
    published_at: datetime | None = None
    starts_at: datetime | None = None
    replaced_at: datetime | None = None
    removable_at: datetime | None = None
    removed_at: datetime | None = None


class KeyStatus(NamedTuple):
    """The stage of a key since a time (UTC; None: not known), and the next action.

    `due`: the date of that; None: never, or not known. `urgency` is "", or how soon a record
    that is not published does harm. `note` explains.
    """

    sign_domain: str
    selector: str | None
    stage: KeyStage
    since: datetime | None
    action: NextAction
    due: datetime | None
    dates: KeyDates
    urgency: str = ""
    note: str = ""

    @property
    def needs_attention(self) -> bool:
        """Whether it is urgent, or needs a decision of the user."""
        return bool(self.urgency) or self.action in _FOR_PEOPLE
