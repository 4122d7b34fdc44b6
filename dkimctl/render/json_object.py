"""JSON: one object of the service's own response shape (interface 2.4), one item a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import Result
from dkimctl.render.item import item_line


def render_json(results: Iterable[Result]) -> Iterator[str]:
    """The object's text: `items`, then their number as `count` and `total`."""
    count = 0
    yield '{"items": ['
    for count, result in enumerate(results, start=1):
        yield f"{',' if count > 1 else ''}\n{item_line(result)}"
    yield f'\n], "count": {count}, "total": {count}}}\n'
