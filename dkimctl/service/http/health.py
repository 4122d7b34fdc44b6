"""What load balancers ask: is the process alive, and is it ready? Neither needs a token."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import falcon
from sqlalchemy import select

from dkimctl.service.database import Store
from dkimctl.service.schema import clients
from dkimctl.system.threads import StartThread, start_daemon

_DATABASE_LIMIT = 2.0  # seconds to answer; load balancers often wait for 5


class HealthResource:
    """GET /healthz: the process answers."""

    protected = False
    method = "GET"

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.set_header("Cache-Control", "no-store")
        response.media = {"message": "OK"}

    on_head = on_get


class ReadyResource:
    """GET /readyz: the database answers in time, or 503."""

    protected = False
    method = "GET"

    def __init__(self, store: Store, limit: float = _DATABASE_LIMIT) -> None:
        self._probe = DatabaseProbe(store)
        self._limit = limit

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.set_header("Cache-Control", "no-store")
        if not self._probe.succeeds_within(self._limit):
            raise falcon.HTTPServiceUnavailable(description="The database does not answer.")
        response.media = {"message": "OK"}

    on_head = on_get


class DatabaseProbe:
    """Asks the database in one thread at a time, so that many probes of a dead one do no harm."""

    def __init__(self, store: Store, start_thread: StartThread = start_daemon) -> None:
        self._store = store
        self._start_thread = start_thread
        self._lock = threading.Lock()
        self._answer: Future[bool] | None = None

    def succeeds_within(self, seconds: float) -> bool:
        """Whether the database answers a query in time; one that is under way counts as well."""
        with self._lock:
            if self._answer is None or self._answer.done():
                self._answer = Future()
                if self._start_thread(self._ask, "probe") is None:
                    self._answer.set_result(False)
            answer = self._answer
        try:
            return answer.result(seconds)
        except TimeoutError:
            return False

    def _ask(self) -> None:
        answer = self._answer
        assert answer is not None  # noqa: S101 - set before the thread starts
        try:
            with self._store.reading() as connection:
                connection.execute(select(clients.c.client_id).limit(1)).first()
        except Exception:  # noqa: BLE001 - whatever it is, the service is not ready
            answer.set_result(False)
        else:
            answer.set_result(True)
