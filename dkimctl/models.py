"""Plain frozen data that the whole house speaks of.

Named tuples, here and elsewhere: a frozen dataclass takes five times as long to define,
which every start of the program would pay for. For the same reason the modules of named
tuples do without `from __future__ import annotations`, whose strings are compiled again.
"""

from enum import StrEnum
from typing import NamedTuple, NoReturn


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


_LONG = 64  # characters; a JWT has hundreds, and they all begin alike


class Secret:
    """A secret or token that shows itself only through `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def masked(self) -> str:
        """Too little to use: the length, and of a long one the start."""
        start = f"{self._text[:4]}..." if len(self._text) >= _LONG else ""
        return f"{start} ({len(self._text)} characters)".strip()

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret is not to be pickled")

    def __reduce__(self) -> NoReturn:
        self.__getstate__()


class Token(NamedTuple):
    """A bearer token. `expires_at` is in seconds since the epoch (interface 3.1)."""

    access_token: Secret
    expires_at: float
