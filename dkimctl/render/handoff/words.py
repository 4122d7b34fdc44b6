"""The texts of a sheet in a language, with its way to write dates and durations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from dkimctl.render.handoff import english, japanese
from dkimctl.render.renderer import Language
from dkimctl.text.escaping import printable

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = "月火水木金土日"
_JAPAN = timedelta(hours=9)


_LANGUAGES = {Language.ENGLISH: english, Language.JAPANESE: japanese}


class Words:
    """Says things in a language.

    `mark` makes markup of a name or value that stands in a text, `text` of the text around it.
    """

    def __init__(
        self,
        language: Language,
        mark: Callable[[str], str] = printable,
        text: Callable[[str], str] = str,
    ) -> None:
        self.language = language
        self._source = _LANGUAGES[language]
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
        return self._text(self._source.TEXTS[key]).format(**data)

    def paragraph(self, *keys: str, **data: object) -> str:
        """Several texts, one after the other."""
        space = "" if self.language is Language.JAPANESE else " "
        return self._text(space).join(self.fill(key, **data) for key in keys)

    def names(self, names: Sequence[str]) -> str:
        """Names one after the other, with their marks."""
        return self._text(self._separator).join(map(self._mark, names))

    def listed(self, names: Sequence[str]) -> str:
        """The same as raw text."""
        return self._separator.join(names)

    @property
    def _separator(self) -> str:
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
        source = self._source
        for length, (one, many) in (
            (86400, source.DAYS), (3600, source.HOURS), (60, source.MINUTES),
        ):  # fmt: skip
            if seconds and seconds % length == 0:
                count = seconds // length
                larger = one if count == 1 else many.format(count)
                is_japanese = self.language is Language.JAPANESE
                return f"{text}({larger})" if is_japanese else f"{text} ({larger})"
        return text

    def _zone(self, time: datetime) -> str:
        offset = time.utcoffset() or timedelta()
        if self.language is Language.JAPANESE and offset == _JAPAN:
            return "日本時間"
        return f"UTC{time.isoformat()[-6:]}" if offset else "UTC"
