"""The words of a sheet in a language, its dates and durations, and lines for plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.handoff.providers import read_yaml
from dkimctl.text import printable

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = "月火水木金土日"
_JAPAN = timedelta(hours=9)
_WIDTH = 72
_INDENT = "  "
# What a line may not begin with in Japanese (JIS X 4051), and what it may not end with.
_NOT_FIRST = "、。」)・ーっゃゅょぁぃぅぇぉッャュョァィゥェォ"
_NOT_LAST = "「("
# Around a word of data, which is never broken; `printable` leaves neither in data.
_START, _END = "\ue000", "\ue001"
_WIDE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6]"
# What a line may break after: a word, a single character of Japanese, or a word of data.
_PIECE = (
    rf"[{_NOT_LAST}]*(?:{_START}[^{_END}]*{_END}|{_WIDE}|(?:(?!{_WIDE})[^\s{_START}])+)"
    rf"[{_NOT_FIRST}]*\s*"
)


class SheetFormat(StrEnum):
    """What `--format` of `handoff` takes."""

    TEXT = "text"
    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


class Language(StrEnum):
    """What `--language` of `handoff` takes."""

    ENGLISH = "en"
    JAPANESE = "ja"


class SheetField(NamedTuple):
    """A label, and raw text to copy or read; `is_link`: it is an address of ours."""

    label: str
    data: str
    is_link: bool = False


class Words:
    """Says things in a language; `mark` makes markup of names and values, `text` of the rest."""

    def __init__(
        self,
        language: Language,
        mark: Callable[[str], str] = printable,
        text: Callable[[str], str] = str,
    ) -> None:
        self.language = language
        self._texts = read_yaml(f"texts/{language}.yaml")
        self._mark = mark
        self._text = text

    def say(self, key: str, **data: str | int) -> str:
        """The text, with names and values as they are marked, and numbers as they are."""
        marked = {
            name: self._mark(value) if isinstance(value, str) else value
            for name, value in data.items()
        }
        return self.fill(key, **marked)

    def fill(self, key: str, **data: object) -> str:
        """The text with data that need no mark, such as a date."""
        return self._text(self._texts[key]).format(**data)

    def paragraph(self, *keys: str, **data: object) -> str:
        """Several texts, one after the other."""
        space = "" if self.language is Language.JAPANESE else " "
        return self._text(space).join(self.fill(key, **data) for key in keys)

    def names(self, names: Sequence[str]) -> str:
        """Names one after the other, with their marks."""
        return self._text(self._comma).join(map(self._mark, names))

    def listed(self, names: Sequence[str]) -> str:
        """The same as raw text."""
        return self._comma.join(names)

    @property
    def _comma(self) -> str:
        return "、" if self.language is Language.JAPANESE else ", "

    def time(self, time: datetime) -> str:
        """Such as `1 March 2027, 00:00 (UTC+09:00)`."""
        if self.language is Language.JAPANESE:
            clock = f"{time.hour}:{time.minute:02}"
            return f"{self.date(time)}{clock}({self._zone(time)})"
        return f"{self.date(time)}, {time:%H:%M} ({self._zone(time)})"

    def date(self, time: datetime) -> str:
        """Such as `1 March 2027`."""
        if self.language is Language.JAPANESE:
            return f"{time.year}年{time.month}月{time.day}日({_DAYS[time.weekday()]})"
        return f"{time.day} {_MONTHS[time.month - 1]} {time.year}"

    def duration(self, seconds: int) -> str:
        """Seconds, and what they are in a larger unit if that has no rest."""
        text = self.fill("seconds", count=seconds)
        for length, unit in (86400, "days"), (3600, "hours"), (60, "minutes"):
            if seconds and seconds % length == 0:
                count = seconds // length
                one, many = self._texts[unit]
                larger = one if count == 1 else many.format(count)
                is_japanese = self.language is Language.JAPANESE
                return f"{text}({larger})" if is_japanese else f"{text} ({larger})"
        return text

    def _zone(self, time: datetime) -> str:
        offset = time.utcoffset() or timedelta()
        if self.language is Language.JAPANESE and offset == _JAPAN:
            return "日本時間"
        return f"UTC{time.isoformat()[-6:]}" if offset else "UTC"


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * min(_width(text), _WIDTH)}"


def columns(fields: Sequence[SheetField]) -> str:
    """Labels and data in two columns."""
    longest = max(_width(field.label) for field in fields)
    return "\n".join(
        f"{_INDENT}{field.label}{' ' * (longest - _width(field.label))}  {printable(field.data)}"
        for field in fields
    )


def item(text: str) -> str:
    return "- " + f"\n{_INDENT}".join(_lines(text, _WIDTH - len("- ")))


def wrapped(text: str) -> str:
    return "\n".join(_lines(text, _WIDTH))


def unbroken(data: str) -> str:
    return " ".join(f"{_START}{word}{_END}" for word in printable(data).split())


def _lines(text: str, width: int) -> list[str]:
    lines = [""]
    used = 0
    for marked in re.findall(_PIECE, text):
        piece = marked.replace(_START, "").replace(_END, "")
        if lines[-1] and used + _width(piece.rstrip()) > width:
            lines.append("")
            used = 0
        lines[-1] += piece
        used += _width(piece)
    return [line.rstrip() for line in lines]


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
