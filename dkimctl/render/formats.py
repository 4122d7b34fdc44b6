"""The output formats, and the way from each to its module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import assert_never

from dkimctl.models import Result


class Format(StrEnum):
    """What `--format` takes."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    ZONE = "zone"
    VALUE = "value"


def render(
    fmt: Format,
    results: Iterable[Result],
    *,
    ttl: int = 3600,
    width: int = 80,
    colour: bool = False,
    only_attention: bool = False,
) -> Iterator[str]:
    """Chunks of text, newlines included, that show `results` in `fmt`.

    Every format but the table takes `results` one by one and keeps none. `ttl` is in seconds
    (zone). `width` is in columns, `colour` adds ANSI codes, and `only_attention` leaves out
    the rows that need none (table).
    """
    # Each format's module is imported when it is chosen: rich alone takes 20 ms.
    match fmt:
        case Format.TABLE:
            from dkimctl.render.table import render_table

            return render_table(results, width, colour=colour, only_attention=only_attention)
        case Format.JSON:
            from dkimctl.render.json_object import render_json

            return render_json(results)
        case Format.JSONL:
            from dkimctl.render.jsonl import render_jsonl

            return render_jsonl(results)
        case Format.ZONE:
            from dkimctl.render.zone import render_zone

            return render_zone(results, ttl)
        case Format.VALUE:
            from dkimctl.render.value import render_value

            return render_value(results)
        case _:
            assert_never(fmt)
