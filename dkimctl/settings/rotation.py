"""When keys are replaced, and how: the policies of `rotation`, by groups of domains."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from dkimctl.names import first_match
from dkimctl.settings.delegation import Pool


class RotationSettings(NamedTuple):
    """How `rotate run` replaces the keys of some domains: an entry of `rotation`."""

    #: The age at which a key gets a successor, which starts `lead` later.
    max_age: timedelta = timedelta(days=180)
    lead: timedelta = timedelta(days=7)
    #: How long the successor has been signing, and published, when the old record is removed.
    grace: timedelta = timedelta(days=14)
    limit: int = 50  # successors a day (UTC) at most
    domains: tuple[str, ...] = ("*",)  # names or globs, in lower case, as A-labels


_DEFAULTS = RotationSettings(domains=())  # of domains that no entry names


class Policies:
    """The entries of `rotation`: of a domain, the first that names it counts."""

    def __init__(
        self, entries: Sequence[RotationSettings] = (), pools: Sequence[Pool] = ()
    ) -> None:
        self.entries = tuple(entries)
        self._find = first_match(self.entries)
        #: Gives the pool of a signing domain, if it is delegated.
        self.pool_of = first_match(pools)

    def of(self, sign_domain: str) -> RotationSettings:
        """The policy of a signing domain in lower case."""
        return self._find(sign_domain) or _DEFAULTS
