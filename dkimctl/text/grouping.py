"""Many things in a message: the first, or the first of each kind, are shown, the rest counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

MAX_ALIKE = 20  # shown of each kind

# These patterns are text, which `re` compiles only if there is something to group.
_QUOTED = r'"[^"]*"'
_NUMBER = r"\d+"
_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"

Kind = TypeVar("Kind", bound=Hashable)


class Grouping(Generic[Kind]):
    """Decides of things, one by one, which are shown. `most` is of each kind; None: all are."""

    def __init__(self, most: int | None = MAX_ALIKE) -> None:
        self._most = most
        self._counts: Counter[Kind] = Counter()

    def shows(self, kind: Kind) -> bool:
        """Whether to show the next thing of this kind."""
        self._counts[kind] += 1
        return self._most is None or self._counts[kind] <= self._most

    def rest(self) -> Iterator[tuple[Kind, int]]:
        """The kinds of which some were not shown, and how many, in order of their first."""
        if self._most is None:
            return
        for kind, count in self._counts.items():
            if count > self._most:
                yield kind, count - self._most


def counted(count: int, noun: str) -> str:
    """Such as `1 domain`, or `3 domains`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(words: Sequence[str], *, count: int = 0, most: int | None = MAX_ALIKE) -> str:
    """The first `most` words, and how many more there are: of `count`, if `words` are not all."""
    shown = words[:most]
    more = max(count, len(words)) - len(shown)
    return ", ".join(shown) + (f", … and {more:,} more" if more else "")


def and_more(count: int, kind: str) -> str:
    """The line that stands for those that are not shown."""
    return f"… and {count:,} more: {kind}"


def without_values(text: str) -> str:
    """`text` without its quoted words and numbers, which differ between messages of a kind."""
    return re.sub(_NUMBER, "0", re.sub(_QUOTED, '""', text))


def without_names(text: str, sign_domain: str, selector: str | None) -> str:
    """`text` with placeholders for the record's name, its domain, and the names around them."""
    domain = sign_domain.lower()
    placeholders = {domain: "DOMAIN"}
    if selector:
        placeholders[f"{selector.lower()}._domainkey.{domain}"] = "FQDN"
    above = domain.partition(".")[2]
    while "." in above:
        placeholders[above] = "ZONE"
        above = above.partition(".")[2]
    return re.sub(_NAME, lambda match: _replaced(match[0], placeholders), text)


def _replaced(name: str, placeholders: Mapping[str, str]) -> str:
    """The name with a placeholder for its longest end that has one; its rest likewise."""
    labels = name.split(".")
    for at in range(len(labels)):
        if placeholder := placeholders.get(".".join(labels[at:]).lower()):
            before = ".".join(labels[:at])
            return f"{_replaced(before, placeholders)}.{placeholder}" if before else placeholder
    return name
