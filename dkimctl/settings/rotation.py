"""When keys are replaced, by groups of domains (`rotation`), and their pools of selectors."""

from __future__ import annotations

import zlib
from collections.abc import Container, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from dkimctl.dkim import record_name
from dkimctl.names import MAX_NAME, first_match
from dkimctl.text import few, format_duration, printable, utf8

_MAX_TEXT = 160  # characters of what an event tells
HOW_TO_EXTEND = (
    "raise `count` of its `delegation` in the config file, then `dkimctl handoff --delegate {}`"
)
MAX_COUNT = 1000  # selectors of a pool; with a new one each week, those of 19 years


class RotationSettings(NamedTuple):
    """How `rotate run` replaces the keys of some domains: an entry of `rotation`."""

    #: The age at which no key signs any more: its successor is registered `lead` before.
    max_age: timedelta = timedelta(days=180)
    lead: timedelta = timedelta(days=7)
    #: How long the successor has been signing, and published, when the old record is removed.
    grace: timedelta = timedelta(days=14)
    limit: int = 50  # successors a day (UTC) at most
    key_len: int | None = None  # of successors; None: 2048, or that of the old key if it is longer
    selectors: str = "s%Y%m%d"  # a template, as in `names.selector_template`
    #: When nothing is registered or removed: from and to, in order, and with time between them.
    freeze: tuple[tuple[datetime, datetime], ...] = ()
    owner: str = ""  # whose domains these are, as text for people
    domains: tuple[str, ...] = ("*",)  # names or globs, in lower case, as A-labels

    @property
    def covers(self) -> str:
        """Its domains, for people."""
        return few(self.domains) if self.domains else "domains that no entry names"

    def frozen_until(self, time: datetime) -> datetime | None:
        """The end of the freeze at this time; None: there is none."""
        return next((end for begin, end in self.freeze if begin <= time < end), None)

    def open_time(self, since: datetime, until: datetime) -> timedelta:
        """How long there is no freeze between two times."""
        frozen = (min(end, until) - max(begin, since) for begin, end in self.freeze)
        return until - since - sum((max(time, timedelta()) for time in frozen), timedelta())


class Pool(NamedTuple):
    """The selectors of some domains, which their owners delegate: an entry of `delegation`.

    Each key has a selector of its own, since the service never gives one a second key (409,
    interface 7.3).
    """

    domains: tuple[str, ...]  # names or globs, in lower case, as A-labels
    selectors: str  # with {n}, which is 1 to `count`
    count: int  # type: ignore[assignment]  # nobody counts its fields
    #: Where the CNAME of each selector leads, with {selector} and {domain}; or else `ns`.
    target: str = ""
    ns: tuple[str, ...] = ()  # the name servers to which _domainkey.DOMAIN is delegated

    def names(self) -> tuple[str, ...]:
        """The selectors, in the order in which they are used."""
        return _names(self.selectors, self.count)

    def free(self, used: Container[str]) -> list[str]:
        """Those that no key has had; `used` is in lower case."""
        return [name for name in self.names() if name not in used]

    def target_of(self, sign_domain: str, selector: str) -> str:
        """The name that has the record, without trailing dot: in a zone of ours."""
        target = self.target or record_name("{selector}", "{domain}")
        return target.replace("{selector}", selector).replace("{domain}", sign_domain).lower()

    def is_too_long(self, sign_domain: str, selector: str = "") -> bool:
        """Whether a name of this selector, or of any, is longer than names in DNS may be."""
        name = selector or max(self.names(), key=len)
        names = (record_name(name, sign_domain), self.target_of(sign_domain, name))
        return max(map(len, names)) > MAX_NAME


@lru_cache
def _names(template: str, count: int) -> tuple[str, ...]:
    return tuple(template.replace("{n}", str(n)) for n in range(1, count + 1))


_DEFAULTS = RotationSettings(domains=())  # of domains that no entry names


class Policies:
    """The entries of `rotation`: of a domain, the first that names it counts."""

    def __init__(
        self, entries: Sequence[RotationSettings] = (), pools: Sequence[Pool] = ()
    ) -> None:
        self.entries = tuple(entries)
        # Asked for often, a domain at a time.
        self._find = lru_cache(first_match((each.domains, each) for each in entries))
        #: Gives the pool of a signing domain, if it is delegated.
        self.pool_of = first_match((each.domains, each) for each in pools)

    def of(self, sign_domain: str) -> RotationSettings:
        """The policy of a signing domain in lower case."""
        return self._find(sign_domain) or _DEFAULTS

    def __str__(self) -> str:
        """The domains and `max_age` of each, and a checksum of all."""
        ages = (f"{few(each.domains)}: {format_duration(each.max_age)}" for each in self.entries)
        text = printable("; ".join(ages))[:_MAX_TEXT] or "the defaults"
        return f"{text} ({zlib.crc32(utf8(repr(self.entries))):08x})"
