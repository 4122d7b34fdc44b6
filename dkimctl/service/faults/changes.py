"""What can be wrong with the answer to a registration request that was processed."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from dkimctl.service.faults.answer import Answer

Item = dict[str, Any]
Change = Callable[[Answer, Random], Answer]

_FAILED = {"code": "500", "message": "unexpected error while registering; retry later"}


def truncated(answer: Answer, rng: Random) -> Answer:
    """The body is cut anywhere before its end; the header gives the length of what is left."""
    return answer.with_body(answer.body[: rng.randrange(len(answer.body))])


def labelled_html(answer: Answer, _dice: Random) -> Answer:
    return answer.with_header("Content-Type", "text/html")


def on_items(change: Callable[[list[Item], Random], list[Item]]) -> Change:
    """A change of the items (interface 2.4); an answer that is not 200 has none, and stays."""

    def changed(answer: Answer, rng: Random) -> Answer:
        if not answer.status.startswith("200 "):
            return answer
        document = json.loads(answer.body)
        items = change(document["items"], rng)
        document |= {"items": items, "count": len(items)}  # `total` counts what is left out, too
        return answer.with_body(json.dumps(document).encode())

    return changed


def reordered(items: list[Item], rng: Random) -> list[Item]:
    """Another order, if there is one."""
    shuffled = rng.sample(items, len(items))
    return shuffled if shuffled != items else items[::-1]


def some_missing(items: list[Item], rng: Random) -> list[Item]:
    """At least one is left out."""
    missing = _some(items, rng)
    return [item for position, item in enumerate(items) if position not in missing]


def some_failed(items: list[Item], rng: Random) -> list[Item]:
    """The result of at least one is 500, and its data is gone."""
    failed = _some(items, rng)
    return [_failed(item) if position in failed else item for position, item in enumerate(items)]


def _some(items: list[Item], rng: Random) -> set[int]:
    """The positions of one to all of the items."""
    return set(rng.sample(range(len(items)), rng.randint(1, len(items))))


def _failed(item: Item) -> Item:
    names: Item = {field: item[field] for field in ("sign_domain", "selector") if field in item}
    return {"result": _FAILED, **names}
