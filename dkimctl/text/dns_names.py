"""Domain names, without trailing dot: which zone one is in, and how people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

_RIGHT_TO_LEFT = ("R", "AL")  # bidirectional classes, of Hebrew and Arabic letters


def contains(zone: str, fqdn: str) -> bool:
    """Whether `fqdn` is at or below the apex of `zone`."""
    name, apex = fqdn.lower(), zone.lower()
    return name == apex or name.endswith(f".{apex}")


def zone_finder(zones: Iterable[str]) -> Callable[[str], str | None]:
    """What finds the longest of `zones` that contains a name, or None; as fast for many zones."""
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
    return not frozenset("*?[").isdisjoint(name)


def readable(name: str, encoding: str = "utf-8") -> str:
    """`name` with U-labels for A-labels (RFC 5890 2.3.2.1), such as `例え.jp` for `xn--r8jz45g.jp`.

    A label stays as it is if it is not a valid A-label, if `encoding` does not have its characters,
    or if a terminal would show it from right to left and so reorder what stands beside it.
    """
    if "xn--" not in name.lower():
        return name
    return ".".join(_readable_label(label, encoding) for label in name.split("."))


def _readable_label(label: str, encoding: str) -> str:
    if not label.lower().startswith("xn--"):
        return label
    import unicodedata

    import idna

    try:
        text = idna.ulabel(label)
        is_same = idna.alabel(text).decode() == label.lower()
        text.encode(encoding)
    except UnicodeError:  # of which idna's own errors are a kind
        return label
    is_shown = text.isprintable() and not any(
        unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text
    )
    return text if is_same and is_shown else label
