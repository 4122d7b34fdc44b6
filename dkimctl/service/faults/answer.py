"""A whole answer of a WSGI application, as a value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, Self
from wsgiref.headers import Headers
from wsgiref.types import WSGIApplication, WSGIEnvironment

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


def json_answer(status: HTTPStatus, document: object) -> Answer:
    answer = Answer(f"{status.value} {status.phrase}", [("Content-Type", "application/json")], b"")
    return answer.with_body(json.dumps(document).encode())


def answer_of(app: WSGIApplication, environ: WSGIEnvironment) -> Answer:
    """Have `app` process a request to its very end, and take its answer."""
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
