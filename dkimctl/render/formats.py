"""Opens the renderer of a format, and imports its module only then: rich alone takes 20 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from dkimctl.render.renderer import KeyFormat, Renderer, TableLayout

if TYPE_CHECKING:
    from datetime import datetime

    from dkimctl.models.key_status import KeyStatus
    from dkimctl.models.listed_key import ListedKey


def open_stage_renderer(fmt: KeyFormat, layout: TableLayout) -> Renderer[KeyStatus]:
    """The renderer of the stages of keys in `fmt`; `layout` is for the table."""
    match fmt:
        case KeyFormat.TABLE:
            from dkimctl.render.stage_table import StageTableRenderer

            return StageTableRenderer(layout)
        case KeyFormat.JSON:
            from dkimctl.render.data import JsonRenderer
            from dkimctl.render.stage_items import stage_fields

            return JsonRenderer(stage_fields, "count")
        case KeyFormat.CSV:
            from dkimctl.render.data import CsvRenderer
            from dkimctl.render.stage_items import STAGE_COLUMNS, stage_row

            return CsvRenderer(STAGE_COLUMNS, stage_row)
        case _:
            assert_never(fmt)


def open_key_renderer(fmt: KeyFormat, layout: TableLayout, now: datetime) -> Renderer[ListedKey]:
    """The renderer of a list of keys in `fmt`; `layout` and `now` are for the table."""
    match fmt:
        case KeyFormat.TABLE:
            from dkimctl.render.key_list_table import KeyTableRenderer

            return KeyTableRenderer(layout, now)
        case KeyFormat.JSON:
            from dkimctl.render.data import JsonRenderer
            from dkimctl.render.key_list_items import key_fields

            return JsonRenderer(key_fields, "count")
        case KeyFormat.CSV:
            from dkimctl.render.data import CsvRenderer
            from dkimctl.render.key_list_items import KEY_COLUMNS, key_row

            return CsvRenderer(KEY_COLUMNS, key_row)
        case _:
            assert_never(fmt)
