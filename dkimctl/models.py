"""Domain specs, registrations, and the results of commands."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, NoReturn, Protocol

from dkimctl.text import readable

NEVER = datetime.max.replace(tzinfo=UTC)
REDACTED = "***"  # stands for what is secret
TOKEN_LIFETIME = 3600.0  # seconds (interface 3.1)
_LONG = 64  # characters; a JWT has hundreds, and all begin with the same few


class Outcome(StrEnum):
    """The result of one entry of a spec file."""

    CREATED = "created"
    EXISTS = "exists"
    PENDING = "pending"  # not sent: only planned, or the run ended early
    BLOCKED = "blocked"  # not sent: its record could not be published
    DIFFERS = "differs"
    TAKEN = "taken"
    INVALID = "invalid"
    UNUSABLE = "unusable"
    FAILED = "failed"
    UNKNOWN = "unknown"
    RETIRED = "retired"  # its record should be removed from DNS

    __hash__ = str.__hash__  # that of Enum is slow, and each entry is looked up ten times


GOOD = frozenset({Outcome.CREATED, Outcome.EXISTS})  # of an entry that is registered as it asks
USABLE = GOOD | {Outcome.DIFFERS}  # outcomes with a record that may be published
SOUND = USABLE | {Outcome.RETIRED}  # outcomes with a record that may be, or have been, published


class RegistrationKey(NamedTuple):
    """A registration within an account, in lower case: DNS ignores case. Use `key_of`."""

    sign_domain: str
    selector: str  # "" where there is none


def key_of(sign_domain: str, selector: str | None) -> RegistrationKey:
    """The key for a signing domain and a selector in any spelling."""
    # Five times for each entry; the class itself would add a Python call.
    return tuple.__new__(RegistrationKey, (sign_domain.lower(), (selector or "").lower()))


class DomainSpec(NamedTuple):
    """One entry to register (interface 2.3). None: not stated, and not sent."""

    sign_domain: str  # an A-label name, in lower case, without trailing dot
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None  # YYYY-MM-DDThh:mm±hh:mm
    default: int | None = None
    enable: bool | None = None
    replaces: str | None = None  # the selector of the key whose successor this is; never sent
    implied: tuple[str, ...] = ()  # fields that nobody stated, only for a new key; never sent

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


class DnsRecord(NamedTuple):
    """The DNS record to publish, from the service (interface 2.4, setting_values)."""

    fqdn: str
    type: str
    value: str


class Registration(NamedTuple):
    """The service's answer for one entry (interface 2.4). None: the field was absent."""

    sign_domain: str
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None
    default: int | None = None
    enable: bool | None = None
    record: DnsRecord | None = None
    regist_date: str | None = None
    code: str | None = None  # that of `result`; None: there was no answer
    message: str | None = None

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)

    @property
    def is_taken(self) -> bool:
        """Whether it belongs to another account: 409 without data (interface 7.3)."""
        return self.code == "409" and self.record is None

    @property
    def signs(self) -> bool:
        """Whether mail is, or will be, signed with it: ours and enabled (interface 2.3)."""
        return not self.is_taken and self.enable is not False

    @property
    def third_party(self) -> int:
        """The designation for third-party signing (`default`), 0 if absent (interface 2.3)."""
        return self.default or 0

    @property
    def created_at(self) -> datetime | None:
        """When the key was made (UTC), or else the start date; None: neither can be read."""
        return utc_time(self.regist_date) or utc_time(self.start_date)

    @property
    def starts_at(self) -> datetime | None:
        """When signing starts, with the offset in which it is written; None: it cannot be read.

        By default at registration (interface 2.3), and never before it, whatever the start date.
        """
        start, registered = own_time(self.start_date), own_time(self.regist_date)
        return max(start, registered) if start and registered else start or registered


@lru_cache(maxsize=1024)  # the times of a key are asked for often, one key after the other
def own_time(text: str | None) -> datetime | None:
    """The time of an ISO 8601 date-time with offset, which it keeps; None for other text."""
    try:
        time = datetime.fromisoformat(text or "")
        time.astimezone(UTC)  # must be possible
        return time if time.tzinfo else None
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def utc_time(text: str | None) -> datetime | None:
    """The same in UTC."""
    time = own_time(text)
    return time and time.astimezone(UTC)


@lru_cache(maxsize=1024)
def written_time(time: datetime | None) -> str | None:
    """ISO 8601 in UTC, to the second."""
    return None if time is None else time.astimezone(UTC).isoformat(timespec="seconds")


class Named(Protocol):
    @property
    def sign_domain(self) -> str: ...
    @property
    def selector(self) -> str | None: ...


def named(item: Named) -> str:
    """The name of a registration, a request or a check in messages, which go to stderr."""
    domain = readable(item.sign_domain, sys.stderr.encoding if sys.stderr else "utf-8")
    return domain + (f" (selector {item.selector})" if item.selector else "")


class Result(NamedTuple):
    """The outcome of one entry, as commands report it; `reason` explains one that is not good."""

    registration: Registration
    outcome: Outcome
    reason: str = ""
    answer: str | None = None  # the code that the service answered in this run


class KeyHistory(NamedTuple):
    """When a key was enabled and seen in DNS (UTC). None: not known."""

    enabled_at: datetime | None = None  # since when at least, perhaps until `disabled_at`
    disabled_at: datetime | None = None  # when the ledger heard of it; also if never enabled
    replaces: str | None = None  # the selector of the key it was made to replace
    published_at: datetime | None = None  # since when all servers have it, at each look
    looked_at: datetime | None = None  # the last look with a verdict that is certain
    verdict: str | None = None
    closed_at: datetime | None = None  # when its record was removed, and not seen again since
    signed_at: datetime | None = None  # when mail showed that it signs although it was replaced
    passed_on: date | None = None  # the last day on which mail passed with it, by DMARC reports


class ClosedKey(NamedTuple):
    """A key that was retired and removed, with its selector (UTC times; None: not known)."""

    sign_domain: str
    selector: str
    third_party: int
    created_at: datetime | None
    started_at: datetime | None  # since when it signed
    replaced_by: str | None  # the selector of its successor
    closed_at: datetime | None
    start_date: str | None = None  # as registered

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


class Alarm(NamedTuple):
    """A problem of a subject, such as a domain (UTC times). `told_at`: when it was reported."""

    subject: str
    problem: str
    first_seen: datetime
    looked_at: datetime
    told_at: datetime | None = None


class EventKind(StrEnum):
    """What happened to a key; a changed policy is about all of them."""

    REGISTERED = "registered"
    IMPORTED = "imported"
    PUBLISHED = "published"  # by us: its record was written into DNS
    SEEN = "seen"  # in DNS for the first time, or no longer: the detail is the verdict
    REMOVED = "removed"
    FORGOTTEN = "forgotten"
    POLICY = "policy changed"


class Actor(NamedTuple):
    """Who uses the ledger."""

    user: str = ""
    machine: str = ""
    command: str = ""  # without its options, such as `rotate run`


NOBODY = Actor()


class Event(NamedTuple):
    """What somebody did, or found."""

    at: datetime | None  # UTC; by the clock of that machine, unless the service's was far ahead
    sign_domain: str  # "" if it is not about a key
    selector: str
    what: str  # an EventKind
    detail: str
    user: str  # from here on, its Actor
    machine: str
    command: str

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


MAX_NETWORKS = 100  # of the mail with a key by one reporter on one day
OTHER_NETWORKS = "others"


class ReportedMail(NamedTuple):
    """The mail with a key in DMARC reports: messages, by network (/24, /48) they came from."""

    passed_from: Counter[str]
    failed_from: Counter[str]


class DmarcReport(NamedTuple):
    """What a receiver saw."""

    reporter: str
    report_id: str  # with the domain that it is about, and its begin
    day: date  # the last that it covers (UTC)
    mail: Mapping[RegistrationKey, ReportedMail]
    others: int  # messages with signatures of domains that are not ours
    wrong: int  # rows that cannot be read


NO_REPORTS_FOR = timedelta(days=14)  # then nothing is known of the mail of a domain


class MailStats(NamedTuple):
    """What reports say of the mail with a key: messages of the last 7 days."""

    passed: int
    failed: int
    passed_on: date | None  # the last day on which mail passed
    is_reported: bool = True  # reports of NO_REPORTS_FOR tell of its domain; else none is known

    @property
    def messages(self) -> int:
        return self.passed + self.failed

    @property
    def failed_percent(self) -> str:
        percent = f"{self.failed / max(self.messages, 1):.1%}"
        return percent if percent != "0.0%" else "<0.1%" if self.failed else "0%"

    def __str__(self) -> str:
        if not self.is_reported:
            return f"none of its domain in the last {NO_REPORTS_FOR.days} days"
        counts = f"{self.messages:,} messages with this key in 7 days, {self.failed_percent} failed"
        return f"{counts}; the last passed on {self.passed_on}" if self.passed_on else counts

    @property
    def is_failing(self) -> bool:
        """Whether so many failed that somebody should look at it."""
        return self.failed > max(19, 0.05 * self.messages)


class Secret:
    """A secret or token whose text only `reveal` gives."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def masked(self) -> str:
        """Too little to use: the length, and the start of a long secret."""
        start = f"{self._text[:4]}..." if len(self._text) >= _LONG else ""
        return f"{start} ({len(self._text)} characters)".strip()

    def __repr__(self) -> str:
        return f"Secret({REDACTED})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")

    __reduce__ = __getstate__


class Token(NamedTuple):
    """A bearer token (interface 3.1). Times are in seconds since the epoch."""

    access_token: Secret
    expires_at: float
    obtained_at: float | None = None  # None: the user provides it, and its age is not known

    def is_valid(self, now: float) -> bool:
        """Whether it has not expired at `now`, by a clock that may have been set meanwhile.

        A token from the future, or with an expiry more than an hour later, counts as expired.
        """
        if self.obtained_at is None:
            return now < self.expires_at
        return self.obtained_at <= now < self.expires_at <= self.obtained_at + TOKEN_LIFETIME
