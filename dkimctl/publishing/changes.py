"""Changes to DNS at the names of records, and what every way to make them implements."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from dkimctl.errors import DkimctlError, NegativeAnswer
from dkimctl.models.registration import DnsRecord, Registration
from dkimctl.text.escaping import printable


class Action(StrEnum):
    """What a plan does at the name of a registration, or why it does nothing."""

    CREATE = "create"
    REPLACE = "replace"
    REMOVE = "remove"
    KEEP = "keep"  # it is as wanted: published, or, of a record to remove, gone
    BLOCKED = "blocked"  # something stands in the way; see the reason
    UNCOVERED = "uncovered"  # by any target
    UNREAD = "unread"  # its zone could not be read


class NameState(NamedTuple):
    """What a target has at a name: TXT values, with their TTL in seconds, or an alias (CNAME).

    The strings of each TXT record are joined. `ttl` is None, and `alias` "", without such a record.
    `redirected` is the owner of the DNAME that makes the alias, or "".
    `delegated` is the zone below the target's own that the name is delegated to, or "". `wire` is
    for the target: the data of each TXT record, if joined strings do not tell how it is stored.
    """

    values: tuple[str, ...] = ()
    ttl: int | None = None
    alias: str = ""
    delegated: str = ""
    wire: tuple[bytes, ...] = ()
    redirected: str = ""


class Change(NamedTuple):
    """The change at the name of a record; `value` is None to remove all TXT records there."""

    registration: Registration
    record: DnsRecord
    action: Action
    before: NameState
    value: str | None
    ttl: int
    reason: str = ""


class Applied(NamedTuple):
    """What became of a change. `error` is None if it is in DNS, at the server that took it."""

    change: Change
    error: DkimctlError | None = None


def outcome_of(change: Change, state: NameState, error: DkimctlError) -> Applied:
    """What became of a change; `error` is for a name that has what it had before."""
    if is_done(state, change):
        return Applied(change)
    return Applied(change, error if is_same(state, change.before) else changed_error(change))


def is_done(state: NameState, change: Change) -> bool:
    """Whether this is the state after the change."""
    wanted = () if change.value is None else (change.value,)
    return state.values == wanted and not (state.alias or state.delegated)


def is_same(one: NameState, other: NameState) -> bool:
    """Whether both have the same records, with any TTL and in any order."""
    return (sorted(one.values), one.alias, one.delegated) == (
        sorted(other.values), other.alias, other.delegated,
    )  # fmt: skip


def changed_error(change: Change) -> DkimctlError:
    """For a name that has not what the plan was made from."""
    return NegativeAnswer(
        f"DNS has changed at {printable(change.record.fqdn)} since it was read",
        hint="run the same command again",
    )


class Access(NamedTuple):
    """Whether a zone can be read and written, and why not; None: only a change would tell."""

    readable: bool | None
    writable: bool | None
    reason: str = ""
    hint: str = ""


class Target(Protocol):
    """A DNS server or provider, as the config file names it.

    `label` names it in messages; `ttl`, in seconds, is that of new records. Names and zones are
    without trailing dot. Several threads use a target at the same time, each for a zone of its own;
    `find_zones` is called before.
    """

    label: str
    ttl: int

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """The zone of the target that each name is in, or None. Raises DkimctlError."""

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """What the target has at each name. Raises DkimctlError."""

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        """Make the changes (CREATE, REPLACE, REMOVE), each only if `before` still holds.

        Yields what became of each one, in any order; raises no DkimctlError. Each name has its old
        or its new state at any moment.
        """

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """Whether the TXT records there can be read and written. May raise DkimctlError."""


class ConfiguredTarget(NamedTuple):
    """A target, and the zones it is for: names or globs; none: all zones that it has."""

    zones: tuple[str, ...]
    target: Target
