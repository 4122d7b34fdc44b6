"""What is to change in DNS at the name of one record, and what became of it."""

from enum import StrEnum
from typing import NamedTuple

from dkimctl.errors import DkimctlError
from dkimctl.models.registration import DnsRecord, Registration


class Action(StrEnum):
    """What a plan does at a name."""

    CREATE = "create"
    REPLACE = "replace"
    REMOVE = "remove"
    KEEP = "keep"  # it is as wanted: published, or, of a record to remove, gone
    BLOCKED = "blocked"  # something stands in the way; see the reason


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
    """The change at the name of a registration's record, from `before` to `value`.

    `value` is the TXT value to publish, None to remove all TXT records there; `ttl` is in seconds.
    """

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
