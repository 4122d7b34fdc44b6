"""An item of a publication plan as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dkimctl.publishing.items import PlanItem
from dkimctl.render.json_format import json_line


class _Item(msgspec.Struct, gc=False):
    sign_domain: str
    selector: str
    fqdn: str
    zone: str
    target: str
    action: str
    reason: str
    value: str | None
    ttl: int | None
    before: Sequence[str]
    before_ttl: int | None
    applied: bool
    in_dns: str | None


def item_line(item: PlanItem) -> str:
    """`item` as a JSON object on one line of printable ASCII."""
    registration, change = item.registration, item.change
    return json_line(
        _Item(
            registration.sign_domain,
            registration.selector or "",
            item.fqdn,
            item.zone,
            item.target,
            item.step,
            item.reason,
            change.value if change else None,
            change.ttl if change else None,
            change.before.values if change else (),
            change.before.ttl if change else None,
            item.is_applied,
            item.check.finding.verdict if item.check else None,
        )
    )
