"""Domain specs, what the service answered for them, and what became of each."""

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """What became of one entry of a spec file."""

    CREATED = "created"
    EXISTS = "exists"
    PENDING = "pending"  # not sent: in a plan, or since the run ended early
    DIFFERS = "differs"
    TAKEN = "taken"
    INVALID = "invalid"
    UNUSABLE = "unusable"
    FAILED = "failed"
    UNKNOWN = "unknown"

    __hash__ = str.__hash__  # Enum's own is written in Python; each entry is looked up ten times


class DomainSpec(NamedTuple):
    """One entry to register (interface 2.3). None: not stated, so not sent.

    `sign_domain` is an A-label name, lower case, without trailing dot. `start_date` is
    `YYYY-MM-DDThh:mm±hh:mm`.
    """

    sign_domain: str
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None
    default: int | None = None
    enable: bool | None = None


class DnsRecord(NamedTuple):
    """The DNS record to publish, as the service gave it (interface 2.4, setting_values)."""

    fqdn: str
    type: str
    value: str


class Registration(NamedTuple):
    """What the service answered for one domain (interface 2.4). None: the field was absent.

    `code` and `message` are those of `result`; `code` is None where no answer came.
    """

    sign_domain: str
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None
    default: int | None = None
    enable: bool | None = None
    record: DnsRecord | None = None
    regist_date: str | None = None
    code: str | None = None
    message: str | None = None

    @property
    def is_taken(self) -> bool:
        """Whether it is somebody else's: 409 without data (interface 7.3)."""
        return self.code == "409" and self.record is None


def pair_of(sign_domain: str, selector: str | None) -> tuple[str, str]:
    """What tells registrations apart, as DNS compares names: without regard to case."""
    return sign_domain.lower(), (selector or "").lower()


class Result(NamedTuple):
    """One domain's state as a command reports it. `reason` explains an outcome that is not good."""

    registration: Registration
    outcome: Outcome
    reason: str = ""
