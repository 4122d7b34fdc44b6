"""Opens the renderer of a format, and imports its module only then: rich alone takes 20 ms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from dkimctl.models.registration import Result
from dkimctl.render.check_counts import Run
from dkimctl.render.renderer import (
    DEFAULT_LAYOUT,
    CheckFormat,
    Format,
    KeyFormat,
    MonitoringFormat,
    PerZoneFormat,
    PerZoneRenderer,
    Provider,
    PublicationFormat,
    Renderer,
    TableLayout,
)

if TYPE_CHECKING:
    from datetime import datetime

    from dkimctl.dns.verdicts import Check, Verdict
    from dkimctl.models.key_status import KeyStatus
    from dkimctl.models.listed_key import ListedKey
    from dkimctl.publishing.items import PlanItem

_NO_RUN = Run("", 0.0)


def open_renderer(
    fmt: Format,
    *,
    ttl: int = 3600,
    origin: str | None = None,
    zones: Sequence[str] = (),
    per_zone: bool = False,
    provider: Provider = Provider.ROUTE53,
    layout: TableLayout = DEFAULT_LAYOUT,
) -> Renderer[Result] | PerZoneRenderer:
    """The renderer of results in `fmt`; a PerZoneRenderer for the formats in PER_ZONE.

    With `per_zone` also for zone and nsupdate, which can do both.
    The table, Markdown, and formats with `zones` keep results until the end; the others keep none.
    `ttl` is in seconds (DNS formats). Names are relative to `origin` (zone). `provider` is for
    terraform, `layout` for the table; of it, Markdown takes `is_plan`.
    """
    match fmt:
        case Format.TABLE | Format.MARKDOWN:
            return _open_for_people(fmt, layout, zones)
        case Format.JSON:
            from dkimctl.render.json_format import JsonRenderer, result_line

            return JsonRenderer(result_line, counted_as=("count", "total"))
        case Format.JSONL:
            from dkimctl.render.json_format import JsonlRenderer, result_line

            return JsonlRenderer(result_line)
        case Format.CSV:
            from dkimctl.render.csv_format import RESULT_COLUMNS, CsvRenderer, result_row

            return CsvRenderer(RESULT_COLUMNS, result_row)
        case Format.ZONE:
            return _open_zone(ttl, origin, zones if per_zone else None)
        case Format.NSUPDATE:
            return _open_nsupdate(zones, ttl, per_zone=per_zone)
        case Format.VALUE:
            from dkimctl.render.value import ValueRenderer

            return ValueRenderer()
        case _:
            return _open_per_zone(fmt, zones, ttl, provider)


def _open_for_people(fmt: Format, layout: TableLayout, zones: Sequence[str]) -> Renderer[Result]:
    if fmt is Format.MARKDOWN:
        from dkimctl.render.result_markdown import ResultMarkdownRenderer

        return ResultMarkdownRenderer(is_plan=layout.is_plan)
    if layout.is_plan:
        from dkimctl.render.plan_table import PlanTableRenderer

        return PlanTableRenderer(layout, zones)
    from dkimctl.render.table import TableRenderer

    return TableRenderer(layout)


def _open_zone(
    ttl: int, origin: str | None, zones: Sequence[str] | None
) -> Renderer[Result] | PerZoneRenderer:
    from dkimctl.render.zone import ZoneFilesRenderer, ZoneRenderer

    return ZoneRenderer(ttl, origin) if zones is None else ZoneFilesRenderer(zones, ttl)


def _open_nsupdate(
    zones: Sequence[str], ttl: int, *, per_zone: bool
) -> Renderer[Result] | PerZoneRenderer:
    from dkimctl.render.nsupdate import NsupdateFilesRenderer, NsupdateRenderer

    return NsupdateFilesRenderer(zones, ttl) if per_zone else NsupdateRenderer(zones, ttl)


def _open_per_zone(
    fmt: PerZoneFormat, zones: Sequence[str], ttl: int, provider: Provider
) -> PerZoneRenderer:
    match fmt:
        case Format.OCTODNS:
            from dkimctl.render.octodns import OctodnsRenderer

            return OctodnsRenderer(zones, ttl)
        case Format.DNSCONTROL:
            from dkimctl.render.dnscontrol import DnscontrolRenderer

            return DnscontrolRenderer(zones, ttl)
        case Format.ROUTE53:
            from dkimctl.render.route53 import Route53Renderer

            return Route53Renderer(zones, ttl)
        case Format.POWERDNS:
            from dkimctl.render.powerdns import PowerdnsRenderer

            return PowerdnsRenderer(zones, ttl)
        case Format.TERRAFORM:
            from dkimctl.render.terraform import TerraformRenderer

            return TerraformRenderer(zones, ttl, provider)
        case _:
            assert_never(fmt)


def open_check_renderer(
    fmt: CheckFormat,
    *,
    wanted: Verdict,
    layout: TableLayout = DEFAULT_LAYOUT,
    quiet: bool = False,
    run: Run = _NO_RUN,
) -> Renderer[Check]:
    """The renderer of checks in `fmt`; `wanted` is the good verdict.

    `run` is for monitoring, the other options for a table; see CheckTableRenderer.
    """
    match fmt:
        case CheckFormat.TABLE:
            from dkimctl.render.check_table import CheckTableRenderer

            return CheckTableRenderer(layout, wanted=wanted, quiet=quiet)
        case CheckFormat.JSON | CheckFormat.JSONL:
            from dkimctl.render.check_items import check_line
            from dkimctl.render.json_format import JsonlRenderer, JsonRenderer

            if fmt is CheckFormat.JSONL:
                return JsonlRenderer(check_line)
            return JsonRenderer(check_line, counted_as=("count",))
        case CheckFormat.CSV:
            from dkimctl.render.check_items import CHECK_COLUMNS, check_row
            from dkimctl.render.csv_format import CsvRenderer

            return CsvRenderer(CHECK_COLUMNS, check_row)
        case CheckFormat.PROMETHEUS | CheckFormat.NAGIOS:
            return _open_monitoring(fmt, wanted, run)
        case _:
            assert_never(fmt)


def _open_monitoring(fmt: MonitoringFormat, wanted: Verdict, run: Run) -> Renderer[Check]:
    if fmt is CheckFormat.PROMETHEUS:
        from dkimctl.render.prometheus import PrometheusRenderer

        return PrometheusRenderer(wanted, run)
    from dkimctl.render.nagios import NagiosRenderer

    return NagiosRenderer(wanted, run)


def open_publication_renderer(
    fmt: PublicationFormat, layout: TableLayout, *, shows_kept: bool = False
) -> Renderer[PlanItem]:
    """The renderer of a plan to publish in `fmt`.

    `shows_kept` is for a table; of `layout`, Markdown takes `most_alike`.
    """
    match fmt:
        case PublicationFormat.TABLE:
            from dkimctl.render.publication_table import PublicationTableRenderer

            return PublicationTableRenderer(layout, shows_kept=shows_kept)
        case PublicationFormat.JSON:
            from dkimctl.render.json_format import JsonRenderer
            from dkimctl.render.publication_items import item_line

            return JsonRenderer(item_line, counted_as=("count",))
        case PublicationFormat.MARKDOWN:
            from dkimctl.render.publication_markdown import PublicationMarkdownRenderer

            return PublicationMarkdownRenderer(layout.most_alike)
        case _:
            assert_never(fmt)


def open_stage_renderer(fmt: KeyFormat, layout: TableLayout) -> Renderer[KeyStatus]:
    """The renderer of the stages of keys in `fmt`; `layout` is for the table."""
    match fmt:
        case KeyFormat.TABLE:
            from dkimctl.render.stage_table import StageTableRenderer

            return StageTableRenderer(layout)
        case KeyFormat.JSON:
            from dkimctl.render.json_format import JsonRenderer
            from dkimctl.render.stage_items import stage_line

            return JsonRenderer(stage_line, counted_as=("count",))
        case KeyFormat.CSV:
            from dkimctl.render.csv_format import CsvRenderer
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
            from dkimctl.render.json_format import JsonRenderer
            from dkimctl.render.key_list_items import key_line

            return JsonRenderer(key_line, counted_as=("count",))
        case KeyFormat.CSV:
            from dkimctl.render.csv_format import CsvRenderer
            from dkimctl.render.key_list_items import KEY_COLUMNS, key_row

            return CsvRenderer(KEY_COLUMNS, key_row)
        case _:
            assert_never(fmt)
