"""A sheet as plain text, for an email: 72 columns, but for values, which are never broken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dkimctl.publication.handoff.sheet import Sheet
from dkimctl.render.handoff.page import Field, Page, RecordPart, ZonePart, make_page
from dkimctl.render.handoff.words import Words
from dkimctl.render.renderer import Language
from dkimctl.text.escaping import printable

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


def sheet_text(sheet: Sheet, language: Language) -> Iterator[str]:
    page = make_page(sheet, Words(language, mark=_unbroken))
    yield from _heading(page.title, "=")
    for paragraph in page.lead:
        yield "\n"
        yield from _wrapped(paragraph)
    for zone in page.zones:
        yield "\n\n"
        yield from _zone(zone)
    yield "\n\n"
    yield from _closing(page)


def _closing(page: Page) -> Iterator[str]:
    yield from _heading(page.never, "-")
    yield "\n"
    yield from _items(page.nevers)
    yield "\n\n"
    yield from _heading(page.check, "-")
    yield "\n"
    yield from _wrapped(page.check_lead)
    yield "\n"
    yield from _fields(page.commands)
    yield f"\n\n{page.made}\n"


def _zone(zone: ZonePart) -> Iterator[str]:
    name = printable(zone.name) + (f" ({zone.readable})" if zone.readable else "")
    yield from _heading(f"{zone.label}: {name}", "=")
    if zone.facts:
        yield "\n"
        yield from _fields(zone.facts)
    for notice in zone.notices:
        yield "\n"
        yield from _wrapped(notice)
    if zone.steps:
        yield f"\n{zone.panel}\n\n"
        yield from _items(zone.steps)
    for record in zone.records:
        yield "\n\n"
        yield from _record(record)


def _record(record: RecordPart) -> Iterator[str]:
    yield from _heading(f"{record.title}: {printable(record.fqdn)}", "-")
    if record.timing:
        yield "\n"
        yield from (*_wrapped(record.deadline), *_wrapped(record.timing))
    yield "\n"
    yield from _fields(record.fields)
    if record.warning:
        yield "\n"
        yield from _wrapped(record.warning)
    for value in record.values:
        yield f"\n{value.label}:\n\n{printable(value.data)}\n"


def _heading(text: str, line: str) -> Iterator[str]:
    yield f"{text}\n{line * min(_width(text), _WIDTH)}\n"


def _fields(fields: Sequence[Field]) -> Iterator[str]:
    """Labels and data in two columns."""
    longest = max(_width(field.label) for field in fields)
    for field in fields:
        gap = " " * (longest - _width(field.label))
        yield f"{_INDENT}{field.label}{gap}  {printable(field.data)}\n"


def _items(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        first, *rest = _lines(text, _WIDTH - len("- "))
        yield f"- {first}\n"
        yield from (f"{_INDENT}{line}\n" for line in rest)


def _wrapped(text: str) -> Iterator[str]:
    if text:
        yield from (f"{line}\n" for line in _lines(text, _WIDTH))


def _unbroken(data: str) -> str:
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
