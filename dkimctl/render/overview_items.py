"""The overview for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.models.overview import Event, Overview
from dkimctl.render.data import json_line
from dkimctl.render.key_list_items import key_fields
from dkimctl.render.stage_items import written_time


def overview_lines(overview: Overview) -> Iterator[str]:
    """One JSON object, with a line for each of its members; times are UTC, to the second."""
    members = {
        "at": written_time(overview.now),
        "domains": overview.domains,
        "keys": overview.keys,
        "stages": overview.stages,
        "states": overview.states,
        "key_lengths": {str(bits): count for bits, count in overview.key_lengths.items()},
        "looked_at": written_time(overview.looked_at),
        "urgent": [key_fields(key) for key in overview.urgent],
        "undecided": [key_fields(key) for key in overview.undecided],
        "week": _events(overview.week),
        "month": _events(overview.month),
        "ages": [band._asdict() for band in overview.ages],
    }
    lines = (f'"{name}": {json_line(value)}' for name, value in members.items())
    yield "{" + ",\n".join(lines) + "}\n"


def _events(events: Sequence[Event]) -> list[dict[str, object]]:
    return [
        {
            "at": written_time(event.at),
            "what": event.what,
            "sign_domain": event.key.sign_domain,
            "selector": event.key.selector,
        }
        for event in events
    ]
