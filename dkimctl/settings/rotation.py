"""When keys are replaced, and how: the policies of `rotation`, by groups of domains."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from dkimctl.names import first_match
from dkimctl.settings.delegation import Pool
from dkimctl.text import few, format_duration, printable, utf8

_MAX_TEXT = 160  # characters of what an event tells


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

    def __str__(self) -> str:
        """What differs from the defaults, in short, and a checksum of all."""
        usual, texts = RotationSettings()._asdict(), []
        for entry in self.entries:
            parts = [few(entry.domains)]
            for name, value in entry._asdict().items():
                if name == "domains" or value == usual[name]:
                    continue
                short = len(value) if isinstance(value, tuple) else value
                text = format_duration(value) if isinstance(value, timedelta) else short
                parts.append(f"{name} {text}")
            texts.append(" ".join(parts))
        text = printable("; ".join(texts))[:_MAX_TEXT] or "the defaults"
        return f"{text} ({zlib.crc32(utf8(repr(self.entries))):08x})"
