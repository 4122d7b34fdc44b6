"""What every way to change DNS implements."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from dkimctl.publishing.changes import Applied, Change, NameState


class Access(NamedTuple):
    """Whether a zone can be read and written; None: not tried, or only a change would tell.

    `reason` says why not, or not known; `hint` what to do about it.
    """

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
        """The zone of the target that each name is in; None: in none of its zones.

        Raises DkimctlError.
        """

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """What the target has at each name. Raises DkimctlError."""

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        """Make the changes (CREATE, REPLACE, REMOVE), each only if `before` still holds.

        Yields what became of each one, in any order; raises no DkimctlError. Each name has its old
        or its new state at any moment.
        """

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """Whether the TXT records at these names can be read and written; changes nothing.

        May raise DkimctlError if they cannot be read.
        """


class ConfiguredTarget(NamedTuple):
    """A target, and the zones it is for: names or globs; none: all zones that it has."""

    zones: tuple[str, ...]
    target: Target
