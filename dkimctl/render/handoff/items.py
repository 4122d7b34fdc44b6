"""A sheet as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from dkimctl.publication.handoff.sheet import Sheet, SheetRecord, SheetZone
from dkimctl.render.json_format import json_line
from dkimctl.render.stage_items import written_time
from dkimctl.text.character_strings import character_strings
from dkimctl.text.idn import readable


def sheet_json(sheet: Sheet) -> Iterator[str]:
    """One object; times are UTC. null: not known, or none."""
    yield f'{{"made_at": {json_line(_utc(sheet.made_at))}'
    yield f', "action": {json_line("delete" if sheet.is_removal else "add")}'
    yield f', "contact": {json_line(sheet.contact or None)}, "zones": ['
    for number, zone in enumerate(sheet.zones):
        yield f"{',' if number else ''}\n{json_line(_zone(zone, sheet.ttl))}"
    yield "\n]}\n"


def _zone(zone: SheetZone, ttl: int) -> dict[str, object]:
    return {
        "zone": zone.place.zone or None,
        "name": readable(zone.name),
        "provider": zone.provider.key if zone.provider else None,
        "name_servers": list(zone.place.name_servers),
        "trouble": zone.place.trouble or None,
        "reason": zone.place.reason or None,
        "records": [_record(record, ttl) for record in zone.records],
    }


def _record(record: SheetRecord, ttl: int) -> dict[str, object]:
    return {
        "sign_domain": record.sign_domain,
        "selector": record.selector,
        "host": record.host,
        "fqdn": record.fqdn,
        "type": "TXT",
        "ttl": ttl,
        "value": record.value,
        "strings": [string.decode() for string in character_strings(record.value)],
        "enter": record.form,
        "is_too_long": record.is_too_long,
        "timing": record.timing,
        "starts_at": _utc(record.starts_at),
        "due": _utc(record.due),
    }


def _utc(time: datetime | None) -> str | None:
    return written_time(time.astimezone(UTC)) if time else None
