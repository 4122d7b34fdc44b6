"""A sheet as Markdown (CommonMark), for a ticket or a wiki.

All data stands in code, so that nothing in it acts as Markdown or HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.publication.handoff.sheet import Sheet
from dkimctl.render.handoff.page import Field, Page, RecordPart, ZonePart, make_page
from dkimctl.render.handoff.words import Words
from dkimctl.render.markdown import code, fenced
from dkimctl.render.renderer import Language
from dkimctl.text.escaping import printable


def sheet_markdown(sheet: Sheet, language: Language) -> Iterator[str]:
    page = make_page(sheet, Words(language, mark=code))
    yield f"# {page.title}\n\n"
    yield from _paragraphs(page.lead)
    for zone in page.zones:
        yield from _zone(zone)
    yield from _closing(page)


def _closing(page: Page) -> Iterator[str]:
    yield f"## {page.never}\n\n"
    yield from _items(page.nevers)
    yield f"## {page.check}\n\n"
    yield from _paragraphs([page.check_lead])
    yield from _fields(page.commands)
    yield f"{page.made}\n"


def _zone(zone: ZonePart) -> Iterator[str]:
    also = f" ({code(zone.readable)})" if zone.readable else ""
    yield f"## {zone.label}: {code(zone.name)}{also}\n\n"
    yield from _fields(zone.facts)
    yield from _paragraphs(zone.notices)
    if zone.steps:
        yield f"### {zone.panel}\n\n"
        yield from _items(zone.steps)
    for record in zone.records:
        yield from _record(record)


def _record(record: RecordPart) -> Iterator[str]:
    yield f"### {record.title}: {code(record.fqdn)}\n\n"
    if record.deadline:
        yield f"**{record.deadline}**\n\n"
    if record.timing:
        yield f"{record.timing}\n\n"
    yield from _fields(record.fields)
    if record.warning:
        yield f"**{record.warning}**\n\n"
    for value in record.values:
        yield f"{value.label}:\n\n{fenced([printable(value.data)])}\n"


def _fields(fields: Sequence[Field]) -> Iterator[str]:
    for field in fields:
        data = f"<{field.data}>" if field.is_link else code(field.data)
        yield f"- {field.label}: {data}\n"
    if fields:
        yield "\n"


def _items(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"- {text}\n" for text in texts)
    yield "\n"


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"{text}\n\n" for text in texts)
