"""Plain frozen data that the whole house speaks of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What became of one entry of a spec file."""

    CREATED = "created"
    EXISTS = "exists"
    PENDING = "pending"  # only in a plan: would be created
    DIFFERS = "differs"
    TAKEN = "taken"
    INVALID = "invalid"
    UNUSABLE = "unusable"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """One entry to register (interface 2.3). None: not stated, so not sent.

    `sign_domain` is an A-label name, lower case, without trailing dot. `start_date` is
    `YYYY-MM-DDThh:mm±hh:mm`. `line` is where the entry stands in its file, from 1.
    """

    sign_domain: str
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None
    default: int | None = None
    enable: bool | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class DnsRecord:
    """The DNS record to publish, as the service gave it (interface 2.4, setting_values)."""

    fqdn: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class Registration:
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


@dataclass(frozen=True, slots=True)
class Result:
    """One domain's state as a command reports it. `reason` explains an outcome that is not good."""

    registration: Registration
    outcome: Outcome
    reason: str = ""


class Secret:
    """A secret or token that shows itself only through `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not to be pickled")


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. `expires_at` is in seconds since the epoch (interface 3.1)."""

    access_token: Secret
    expires_at: float
