"""Selections of registrations, by domain names, globs and spec files."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from dkimctl.models.registration import DomainSpec, RegistrationKey, key_of
from dkimctl.text.dns_names import is_glob


class _Selectable(Protocol):
    """A registration, or a closed key."""

    @property
    def sign_domain(self) -> str: ...
    @property
    def key(self) -> RegistrationKey: ...


_SelectableT = TypeVar("_SelectableT", bound=_Selectable)


def is_file(word: str) -> bool:
    """Whether a word of a selection is the name of a spec file; a URL is none."""
    separators = os.sep + (os.altsep or "")
    return "://" not in word and (
        word == "-"
        or word.lower().endswith((".yaml", ".yml", ".json", ".csv"))
        or any(separator in word for separator in separators)
    )


class Selection:
    """The registrations that words select; no words select all.

    `read_specs` gives the entries of a spec file, `to_domain` the A-label form of a name.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        read_specs: Callable[[str], Iterable[DomainSpec]],
        to_domain: Callable[[str], str],
    ) -> None:
        self._is_all = not words
        self._globs: dict[str, re.Pattern[str]] = {}
        # Words (as typed, or for an entry of a file) by what they select: a domain or one key.
        self._names: dict[str | RegistrationKey, str] = {}
        self._matched: set[str] = set()
        for word in words:
            if is_file(word):
                for spec in read_specs(word):
                    self._add(spec.sign_domain, spec.selector)
            elif is_glob(word):
                self._globs[word] = re.compile(fnmatch.translate(word.lower()))
            else:
                self._add(to_domain(word), None)

    @property
    def is_empty(self) -> bool:
        """Whether it selects nothing, whatever is registered: its words are files without specs."""
        return not (self._is_all or self._globs or self._names)

    def pick(self, keys: Iterable[_SelectableT]) -> Iterator[_SelectableT]:
        """The selected ones of registrations or closed keys."""
        return iter(keys) if self._is_all else filter(self._has, keys)

    def unmatched(self) -> list[str]:
        """The words that have selected nothing, once `pick` is exhausted."""
        words = [*self._globs, *self._names.values()]
        return [word for word in words if word not in self._matched]

    def _add(self, domain: str, selector: str | None) -> None:
        word = domain if selector is None else f"{domain} (selector {selector})"
        self._names[domain if selector is None else key_of(domain, selector)] = word

    def _has(self, one: _Selectable) -> bool:
        domain = one.sign_domain
        words = [word for word, glob in self._globs.items() if glob.match(domain)]
        for name in (domain, one.key):
            word = self._names.get(name)
            if word is not None:
                words.append(word)
        self._matched.update(words)
        return bool(words)
