"""Pools of selectors, which customers delegate to a zone of ours, once."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

from dkimctl.names import MAX_NAME, key_name_length

HOW_TO_EXTEND = (
    "raise `count` of its `delegation` in the config file, then `dkimctl handoff --delegate {}`"
)
MAX_COUNT = 1000  # selectors of a pool; with a new one each week, those of 19 years


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
        if not self.target:
            return f"{selector}._domainkey.{sign_domain}".lower()
        target = self.target.replace("{selector}", selector).replace("{domain}", sign_domain)
        return target.lower()

    def is_too_long(self, sign_domain: str, selector: str = "") -> bool:
        """Whether a name of this selector, or of any, is longer than names in DNS may be."""
        name = selector or max(self.names(), key=len)
        longest = max(key_name_length(sign_domain, name), len(self.target_of(sign_domain, name)))
        return longest > MAX_NAME


@lru_cache
def _names(template: str, count: int) -> tuple[str, ...]:
    return tuple(template.replace("{n}", str(n)) for n in range(1, count + 1))
