"""Match the items of an answer to the entries that were sent: by name, never by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from dkimctl.models.registration import DomainSpec, Registration, RegistrationKey, key_of

_names = attrgetter("sign_domain", "selector")


class Matched(NamedTuple):
    """`answers`: one for each entry, None if it has no item. `strays`: items without an entry."""

    answers: list[Registration | None]
    strays: list[Registration]


def match(specs: Sequence[DomainSpec], items: Iterable[Registration]) -> Matched:
    """Find the entry of each item by signing domain and selector.

    An item with a selector that was not requested belongs to its domain's entry without selector;
    one without selector to the only entry of its domain. Of two items for one entry, the first
    one with a record counts, or else the first; the other is a stray.
    """
    items = list(items)
    if list(map(_names, items)) == list(map(_names, specs)):  # nearly always
        return Matched([*items], [])
    index = _Index(specs)
    answers: list[Registration | None] = [None] * len(specs)
    strays = []
    for item in items:
        position = index.find(item)
        if position is None:
            strays.append(item)
            continue
        if (before := answers[position]) is not None:
            if before.record is not None or item.record is None:
                strays.append(item)
                continue
            strays.append(before)
        answers[position] = _as_named(item, specs[position])
    return Matched(answers, strays)


def _as_named(item: Registration, spec: DomainSpec) -> Registration:
    """`item` with the domain as the entry spells it, and the entry's selector if it has none."""
    if item.sign_domain == spec.sign_domain and item.selector is not None:
        return item  # nearly always, and a copy takes as long as all the rest
    return item._replace(sign_domain=spec.sign_domain, selector=item.selector or spec.selector)


class _Index:
    def __init__(self, specs: Sequence[DomainSpec]) -> None:
        self._by_key: dict[RegistrationKey, int] = {}
        self._by_domain: dict[str, list[int]] = {}
        for position, spec in enumerate(specs):
            key = spec.key
            self._by_key[key] = position
            self._by_domain.setdefault(key.sign_domain, []).append(position)

    def find(self, item: Registration) -> int | None:
        for key in (item.key, key_of(item.sign_domain, None)):
            if key in self._by_key:
                return self._by_key[key]
        of_domain = self._by_domain.get(item.key.sign_domain, [])
        return of_domain[0] if item.selector is None and len(of_domain) == 1 else None
