"""The embedded service with faults: a share of the registration requests fails on purpose.

Run: python tests/support/faulty_service.py DATA '{"seed": 1, "any": 0.1}'

It says on stderr where it listens, as `dkimctl serve` does. `any` is the probability of a fault;
`slow` is in seconds. The same seed affects the same requests, counted from the start. Token
requests are not affected.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time
from http import HTTPStatus
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.headers import Headers
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

from dkimctl.service.app import create_app
from dkimctl.service.database import open_key_store

# Before the request is processed, or after that: the client must not rely on either.
BEFORE = ("drop-before", "429", "500-before", "502-before", "503-before", "504-before")
AFTER = ("drop-after", "500-after", "502-after", "503-after", "504-after", "slow")
SPOILED = ("truncated", "content-type", "reordered", "missing-items", "item-500")
KINDS = (*BEFORE, *AFTER, *SPOILED)


class Dropped(Exception):
    """Closes the connection without an answer."""


class FaultInjector:
    """WSGI middleware that draws a fault, or none, for each registration request."""

    def __init__(self, app, seed: int, any: float, slow: float):  # noqa: A002
        self._app, self._seed, self._share, self._slow = app, seed, any, slow
        self._count, self._lock = 0, threading.Lock()

    def __call__(self, environ, start_response):
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"]) != ("POST", "/domain/dkim"):
            return self._app(environ, start_response)
        with self._lock:
            self._count += 1
            rng = random.Random(f"{self._seed}:{self._count}")
        if rng.random() >= self._share:
            return self._app(environ, start_response)
        status, headers, body = self._faulty(rng.choice(KINDS), environ, rng)
        Headers(headers)["Content-Length"] = str(len(body))
        start_response(status, headers)
        return [body]

    def _faulty(self, kind, environ, rng):
        """Status, headers and body of an answer at fault."""
        if kind not in BEFORE:
            started = []
            body = b"".join(self._app(environ, lambda *given: started.append(given)))
            status, headers = started[-1][:2]
        if kind.startswith("drop"):
            raise Dropped
        if kind[:3].isdigit():  # as API gateways word it
            refused = HTTPStatus(int(kind[:3]))
            body = json.dumps({"message": refused.phrase}).encode()
            return f"{refused.value} {refused.phrase}", [("Content-Type", "application/json")], body
        if kind == "slow":
            time.sleep(self._slow)
        elif kind == "truncated":
            body = body[: rng.randrange(len(body))]
        elif kind == "content-type":
            Headers(headers)["Content-Type"] = "text/html"
        elif status.startswith("200 "):
            body = _spoil_items(kind, json.loads(body), rng)
        return status, headers, body


def _spoil_items(kind: str, document: dict, rng: random.Random) -> bytes:
    """The answer with its items in another order, or at least one of them left out or failed."""
    items = document["items"]
    some = set(rng.sample(range(len(items)), rng.randint(1, len(items))))
    if kind == "reordered":
        shuffled = rng.sample(items, len(items))
        items = shuffled if shuffled != items else items[::-1]
    elif kind == "missing-items":
        items = [item for position, item in enumerate(items) if position not in some]
    else:
        for position in some:
            names = {name: items[position][name] for name in ("sign_domain", "selector")
                     if name in items[position]}  # fmt: skip
            items[position] = {"result": {"code": "500", "message": "unexpected error"}, **names}
    document |= {"items": items, "count": len(items)}  # `total` includes what is left out
    return json.dumps(document).encode()


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection, which ends after one answer."""

    daemon_threads = True
    request_queue_size = 128


class _Answering(ServerHandler):
    def handle_error(self) -> None:
        """Send nothing."""
        if not isinstance(sys.exception(), Dropped):
            super().handle_error()


class _Handler(WSGIRequestHandler):
    def handle(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if self.parse_request():
            handler = _Answering(self.rfile, self.wfile, sys.stderr, self.get_environ())
            handler.request_handler = self
            handler.run(self.server.get_app())

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    store = open_key_store(Path(sys.argv[1]))
    server = _Server(("127.0.0.1", 0), _Handler)
    server.set_app(FaultInjector(create_app(store), **json.loads(sys.argv[2])))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    sys.stderr.write(f"serving on http://127.0.0.1:{server.server_port}\n")
    server.serve_forever()


if __name__ == "__main__":
    main()
