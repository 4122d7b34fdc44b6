"""Domain specs, registrations, and the results of commands."""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Protocol


class Outcome(StrEnum):
    """The result of one entry of a spec file."""

    CREATED = "created"
    EXISTS = "exists"
    PENDING = "pending"  # not sent: only planned, or the run ended early
    DIFFERS = "differs"
    TAKEN = "taken"
    INVALID = "invalid"
    UNUSABLE = "unusable"
    FAILED = "failed"
    UNKNOWN = "unknown"
    RETIRED = "retired"  # its record should be removed from DNS

    __hash__ = str.__hash__  # that of Enum is slow, and each entry is looked up ten times


GOOD = frozenset({Outcome.CREATED, Outcome.EXISTS})
"""Outcomes of an entry that is registered as it asks."""

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
        """When signing starts (UTC); None: no date can be read.

        By default at registration (interface 2.3), and never before it, whatever the start date.
        """
        dates = [date for date in map(utc_time, (self.start_date, self.regist_date)) if date]
        return max(dates, default=None)


def utc_time(text: str | None) -> datetime | None:
    """The UTC time of an ISO 8601 date-time with offset; None for other text."""
    try:
        time = datetime.fromisoformat(text or "")
        return time.astimezone(UTC) if time.tzinfo else None
    except (ValueError, OverflowError):
        return None


def by_signing_domain(registrations: Iterable[Registration]) -> dict[str, list[Registration]]:
    """The registrations of each signing domain, which is in lower case, in order."""
    by_domain: dict[str, list[Registration]] = {}
    for registration in registrations:
        by_domain.setdefault(registration.key.sign_domain, []).append(registration)
    return by_domain


class _Named(Protocol):
    @property
    def sign_domain(self) -> str: ...
    @property
    def selector(self) -> str | None: ...


def named(item: _Named) -> str:
    """The name of a registration, a request or a check in messages."""
    return item.sign_domain + (f" (selector {item.selector})" if item.selector else "")


class Result(NamedTuple):
    """The outcome of one entry, as commands report it; `reason` explains one that is not good."""

    registration: Registration
    outcome: Outcome
    reason: str = ""
