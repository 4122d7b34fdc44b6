"""WSGI middleware that draws a fault, or none, for each registration request."""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from random import Random
from threading import Lock
from typing import NoReturn
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from dkimctl.service.faults.answers import answer_of
from dkimctl.service.faults.kinds import KINDS, Exchange
from dkimctl.service.faults.plan import Plan

_REGISTRATION = ("POST", "/domain/dkim")  # interface 4.2


class FaultInjector:
    """Wraps `app` and injects the faults of `plan`.

    The server must receive a request completely before it calls the app, as waitress does, since
    a request that is not processed is not read. `hang_up` is called instead of answering, and
    closes the connection; `sleep` takes seconds.
    """

    def __init__(
        self,
        app: WSGIApplication,
        plan: Plan,
        hang_up: Callable[[], NoReturn],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._app = app
        self._plan = plan
        self._hang_up = hang_up
        self._sleep = sleep
        self._kinds = list(plan.faults)
        self._bounds = list(accumulate(plan.faults.values()))
        self._count = 0
        self._count_lock = Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"]) != _REGISTRATION:
            return self._app(environ, start_response)
        rng = self._next_rng()
        kind = self._draw(rng)
        if kind is None:
            return self._app(environ, start_response)
        process = partial(answer_of, self._app, environ)
        exchange = Exchange(process, self._hang_up, self._wait, self._plan.retry_after, rng)
        answer = KINDS[kind](exchange)
        start_response(answer.status, list(answer.headers))
        return [answer.body]

    def _wait(self) -> None:
        self._sleep(self._plan.slow)

    def _next_rng(self) -> Random:
        """A generator for one request, so that concurrent requests do not affect each other."""
        with self._count_lock:
            self._count += 1
            number = self._count
        return Random(f"{self._plan.seed}:{number}")  # noqa: S311 - not for security

    def _draw(self, rng: Random) -> str | None:
        position = bisect(self._bounds, rng.random())
        return self._kinds[position] if position < len(self._kinds) else None
