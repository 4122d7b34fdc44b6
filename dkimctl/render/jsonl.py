"""JSON Lines: one item a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import Result
from dkimctl.render.item import item_line


def render_jsonl(results: Iterable[Result]) -> Iterator[str]:
    """One line of JSON for each result."""
    for result in results:
        yield f"{item_line(result)}\n"
