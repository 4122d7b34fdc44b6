"""Draw docs/images/overview.svg: the page of `overview --html`, for keys that are made up.

The picture holds the page itself, down to the legend: its style, and its HTML as a foreignObject.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dkimctl.dns.verdicts import Urgency, Verdict
from dkimctl.formats.overview_text import Overview
from dkimctl.formats.pages import overview_page
from dkimctl.models import KeyHistory, Registration
from dkimctl.rotation.life import Key, KeyDates, KeyStage, NextAction

PICTURE = Path(__file__).parent / "images" / "overview.svg"
_WIDTH, _HEIGHT = 960, 1245
_NOW = datetime(2027, 3, 15, 9, tzinfo=UTC)
# For each key: stage, what comes next and in how many days, and the days of KeyDates.
_KEYS = {
    ("shop.example.org", "k51d9c02"): (
        KeyStage.REGISTERED, NextAction.PUBLISH, -1, (-4, None, 2)
    ),
    ("example.com", "s2026b"): (
        KeyStage.GRACE, NextAction.REMOVE, 3, (-194, -194, -187, -11, 3)
    ),
    ("example.com", "s2027a"): (
        KeyStage.SIGNING, NextAction.REGISTER, 162, (-18, -18, -11)
    ),
    ("mail.example.com", "s2026b"): (
        KeyStage.SUCCESSOR_PUBLISHED, NextAction.WAIT, 5, (-182, -182, -175, 5, 19)
    ),
    ("mail.example.com", "s2027a"): (
        KeyStage.PUBLISHED, NextAction.WAIT, 5, (-2, -2, 5)
    ),
    ("news.example.net", "k0a3b7f4"): (
        KeyStage.SIGNING, NextAction.REGISTER, 12, (-168, -166, -161)
    ),
    ("shop.example.net", "k8e27d16"): (
        KeyStage.SIGNING, NextAction.REGISTER, 12, (-168, -166, -161)
    ),
    ("club.example.org", "s2026c"): (
        KeyStage.SIGNING, NextAction.REGISTER, 91, (-89, -88, -82)
    ),
}  # fmt: skip
_SHORT = "news.example.net"  # its key has 1024 bits


def picture() -> str:
    """The SVG."""
    keys = [_key(domain, selector, *rest) for (domain, selector), rest in _KEYS.items()]
    page = overview_page(Overview(keys, _NOW), "default")
    [(style, body)] = re.findall(r"(<style>.*</style>).*<body>(.*)<footer>", page, re.DOTALL)
    body = body.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {size}>\n'
        f"<title>The page of dkimctl overview --html</title>\n{style}\n"
        f'<rect {size} style="fill: var(--ground)"/>\n<foreignObject {size}>\n'
        f'<body xmlns="http://www.w3.org/1999/xhtml">{body}</body>\n</foreignObject>\n'
        f'<rect {size} style="fill: none; stroke: var(--line); stroke-width: 2"/>\n</svg>\n'
    )


def _key(
    domain: str, selector: str, stage: KeyStage, action: NextAction, due: int,
    days: tuple[int | None, ...],
) -> Key:  # fmt: skip
    dates = KeyDates(*(None if day is None else _NOW + timedelta(days=day) for day in days))
    is_published = dates.published_at is not None
    verdict = Verdict.PUBLISHED if is_published else Verdict.MISSING
    history = KeyHistory(verdict=verdict, looked_at=_NOW - timedelta(hours=3))
    registration = Registration(domain, selector, 1024 if domain == _SHORT else 2048)
    return Key(
        registration, history, stage, None, action, _NOW + timedelta(days=due), dates,
        Urgency.NONE if is_published else Urgency.SOON, starts_at=dates.signs_since,
        age=_NOW - dates.created_at,
    )  # fmt: skip


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8", newline="\n")
