"""The lists of the `service` commands as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping


def json_list(name: str, items: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """One object with a list of this name, an item on each line."""
    yield f'{{"{name}": ['
    for number, item in enumerate(items):
        yield (",\n " if number else "\n ") + json.dumps(item)
    yield "\n]}\n"
