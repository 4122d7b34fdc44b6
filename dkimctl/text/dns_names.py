"""Which zone a domain name is in, by its text; names and zones are without trailing dot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

_GLOB_CHARACTERS = frozenset("*?[")


def contains(zone: str, fqdn: str) -> bool:
    """Whether `fqdn` is at or below the apex of `zone`."""
    name, apex = fqdn.lower(), zone.lower()
    return name == apex or name.endswith(f".{apex}")


def zone_finder(zones: Iterable[str]) -> Callable[[str], str | None]:
    """The function that finds the longest of `zones` that contains a name, or None.

    For each name it takes no longer for many zones.
    """
    by_name = {zone.lower(): zone for zone in zones}

    def find(fqdn: str) -> str | None:
        return next((by_name[name] for name in parents(fqdn) if name in by_name), None)

    return find


def parents(fqdn: str) -> Iterator[str]:
    """`fqdn` in lower case, and each name above it but the root."""
    name = fqdn.lower()
    while name:
        yield name
        name = name.partition(".")[2]


def is_glob(name: str) -> bool:
    """Whether it is a pattern for names, as fnmatch has them."""
    return not _GLOB_CHARACTERS.isdisjoint(name)
