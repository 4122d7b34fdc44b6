"""The answer of a WSGI application as a value, and the ways to spoil one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from random import Random
from typing import Any, NamedTuple, Self
from wsgiref.headers import Headers
from wsgiref.types import WSGIApplication, WSGIEnvironment

from dkimctl.service.registrar import FAILED, Item

Header = tuple[str, str]


class Answer(NamedTuple):
    """`status` is as in WSGI, such as `200 OK`."""

    status: str
    headers: Sequence[Header]
    body: bytes

    def with_header(self, name: str, value: str) -> Self:
        headers = Headers(list(self.headers))
        headers[name] = value
        return self._replace(headers=headers.items())

    def with_body(self, body: bytes) -> Self:
        return self._replace(body=body).with_header("Content-Length", str(len(body)))


Change = Callable[[Answer, Random], Answer]
"""Changes the answer to a request that was processed."""


def json_answer(status: HTTPStatus, document: object) -> Answer:
    answer = Answer(f"{status.value} {status.phrase}", [("Content-Type", "application/json")], b"")
    return answer.with_body(json.dumps(document).encode())


def answer_of(app: WSGIApplication, environ: WSGIEnvironment) -> Answer:
    """Have `app` process a request completely, and return its answer."""
    started: list[tuple[str, list[Header]]] = []
    chunks: list[bytes] = []

    def start_response(status: str, headers: list[Header], _: Any = None, /) -> Any:
        started.append((status, headers))
        return chunks.append

    body = app(environ, start_response)
    try:
        chunks.extend(body)
    finally:
        if hasattr(body, "close"):
            body.close()
    return Answer(*started[-1], b"".join(chunks))


def truncated(answer: Answer, rng: Random) -> Answer:
    """Cut the body anywhere before its end; Content-Length is that of the rest."""
    return answer.with_body(answer.body[: rng.randrange(len(answer.body))])


def labelled_html(answer: Answer, _rng: Random) -> Answer:
    return answer.with_header("Content-Type", "text/html")


def change_items(change: Callable[[list[Item], Random], list[Item]]) -> Change:
    """Apply `change` to the items; an answer other than 200 has none, and is not changed."""

    def changed(answer: Answer, rng: Random) -> Answer:
        if not answer.status.startswith("200 "):
            return answer
        document = json.loads(answer.body)
        items = change(document["items"], rng)
        document |= {"items": items, "count": len(items)}  # `total` includes what is left out
        return answer.with_body(json.dumps(document).encode())

    return changed


def reordered(items: list[Item], rng: Random) -> list[Item]:
    """Another order, if there is one."""
    shuffled = rng.sample(items, len(items))
    return shuffled if shuffled != items else items[::-1]


def some_missing(items: list[Item], rng: Random) -> list[Item]:
    """Leave out at least one."""
    missing = _some_positions(items, rng)
    return [item for position, item in enumerate(items) if position not in missing]


def some_failed(items: list[Item], rng: Random) -> list[Item]:
    """Give at least one the result 500, without data."""
    failed = _some_positions(items, rng)
    return [_failed(item) if position in failed else item for position, item in enumerate(items)]


def _some_positions(items: list[Item], rng: Random) -> set[int]:
    """One to all of the positions."""
    return set(rng.sample(range(len(items)), rng.randint(1, len(items))))


def _failed(item: Item) -> Item:
    names: Item = {field: item[field] for field in ("sign_domain", "selector") if field in item}
    return {"result": FAILED, **names}
