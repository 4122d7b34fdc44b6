"""Text from elsewhere, made safe and short enough to show; and as the strings of a TXT record."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Generic, Literal, TypeVar

from dkimctl.errors import UsageError

# Not "printable" for Python, but common in French and Japanese.
_SPACES = "\u00a0\u3000"
# "Printable" for Python, but invisible: fillers and joiners. Variation selectors are not among
# them, since people's names contain them.
_HIDDEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"

_MAX_QUOTE = 60
MAX_ALIKE = 20  # shown of each kind

TIMERS_DOC = "https://github.com/dkimctl/dkimctl/blob/main/docs/timers.md"
Kind = TypeVar("Kind", bound=Hashable)
DAY = 86400.0  # seconds

_DURATION = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw]?)"  # compiled when it is first used
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
_UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}


def printable(text: str) -> str:
    r"""`text` on one line, without anything that a terminal would act on or hide.

    Control characters, line separators, bidirectional controls, fillers, zero-width characters and
    lone surrogates become `\xNN`, `\uNNNN` or `\UNNNNNNNN`; other text stays as it is.
    """
    if text.isascii() and text.isprintable():
        return text

    def shown(char: str) -> str:
        if char in _SPACES or (char.isprintable() and char not in _HIDDEN):
            return char
        number = ord(char)
        if number <= 0xFF:
            return f"\\x{number:02x}"
        return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"

    return "".join(map(shown, text))


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
    import idna

    try:
        text = idna.ulabel(label)
        is_same = idna.alabel(text).decode() == label.lower()
        text.encode(encoding)
    except UnicodeError:  # of which idna's own errors are a kind
        return label
    directions = {unicodedata.bidirectional(char) for char in text}
    is_shown = text.isprintable() and not directions & {"R", "AL"}  # of Hebrew and Arabic letters
    return text if is_same and is_shown else label


def quoted(text: str) -> str:
    """`text` in quotes for a message: `printable`, and cut at 60 characters."""
    cut = text[:_MAX_QUOTE] + "…" if len(text) > _MAX_QUOTE else text
    return f'"{printable(cut)}"'


def few(words: Sequence[str], limit: int = 5) -> str:
    """The first of `words`, for a message."""
    return ", ".join(words[:limit]) + (", …" if len(words) > limit else "")


def utf8(text: str) -> bytes:
    """`text` in UTF-8; surrogates, which have none, as if they had."""
    return text.encode("utf-8", "surrogatepass")


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


def listed(words: Sequence[str], *, most: int | None = MAX_ALIKE) -> str:
    """The first `most` words, and how many more there are."""
    more = len(words) - len(words[:most])
    return ", ".join(words[:most]) + (f", … and {more:,} more" if more else "")


def and_more(count: int, kind: str) -> str:
    """The line that stands for those that are not shown."""
    return f"… and {count:,} more: {kind}"


def without_values(text: str) -> str:
    """`text` without its quoted words and numbers, which differ between messages of a kind."""
    return re.sub(r"\d+", "0", re.sub(r'"[^"]*"', '""', text))


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
    name = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
    return re.sub(name, lambda match: _replaced(match[0], placeholders), text)


def _replaced(name: str, placeholders: Mapping[str, str]) -> str:
    """The name with a placeholder for its longest end that has one; its rest likewise."""
    labels = name.split(".")
    for at in range(len(labels)):
        if placeholder := placeholders.get(".".join(labels[at:]).lower()):
            before = ".".join(labels[:at])
            return f"{_replaced(before, placeholders)}.{placeholder}" if before else placeholder
    return name


def parse_duration(text: str, *, longest: float = 3650 * DAY, may_be_zero: bool = False) -> float:
    """Seconds, from text such as `30`, `5m` or `26w`; at most `longest`. Raises UsageError."""
    match = re.fullmatch(_DURATION, text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else -1.0
    if not 0 <= seconds <= longest or not (seconds or may_be_zero):
        bounds = f"{'' if may_be_zero else 'more than 0, and '}at most {format_duration(longest)}"
        hint = f"write a number and s, m, h, d or w, such as 30s, 5m or 2h; {bounds}"
        raise UsageError("invalid duration", hint=hint)
    return seconds


@lru_cache(maxsize=1024)  # of keys that were registered or seen together
def format_duration(time: timedelta | float, *, units: Literal[1, 2] = 2) -> str:
    """A time, or seconds, in its largest unit and the next: "12 s", "2 h 10 min" or "7 d 12 h"."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    left = max(math.ceil(seconds), 0)
    counts: list[str] = []
    for name, length in _UNITS.items():
        count, left = divmod(left, length)
        if count or counts:
            counts.append(f"{count} {name}" if count else "")
        if len(counts) == units:
            break
    return " ".join(filter(None, counts)) or "0 s"


def install_beside(*packages: str) -> str:
    """The hint for libraries that are missing. No registry has dkimctl, with its extras."""
    return f"beside dkimctl, run `pip install {' '.join(packages)}` (with pipx: `pipx inject`)"
