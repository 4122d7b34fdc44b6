"""What operators watch: is the process alive, is it ready, and metrics for Prometheus."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import falcon
from sqlalchemy import func, select

from dkimctl.errors import UsageError, os_errors_as
from dkimctl.service.clients import ClientState
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import KeyMaker, KeyPair
from dkimctl.service.schema import clients
from dkimctl.threads import start_daemon

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_DATABASE_LIMIT = 2.0  # seconds to answer; load balancers often wait for 5
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30)
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # where processes count together
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the directory made there is private


class HealthEndpoints:
    """GET /healthz: the process answers. GET /readyz: so does the database, or 503.

    The database is asked in one thread at a time, so that many such requests of a dead one do no
    harm.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._answer: Future[bool] | None = None

    def on_get_alive(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.set_header("Cache-Control", "no-store")
        response.media = {"message": "OK"}

    def on_get_ready(self, _request: falcon.Request, response: falcon.Response) -> None:
        with self._lock:
            if self._answer is None or self._answer.done():
                self._answer = Future()
                if start_daemon(partial(self._ask, self._answer), "probe") is None:
                    self._answer.set_result(False)
            answer = self._answer  # one that is under way counts as well
        self.on_get_alive(_request, response)
        if not wait([answer], _DATABASE_LIMIT).done or not answer.result():
            raise falcon.HTTPServiceUnavailable(description="The database does not answer.")

    on_head_alive, on_head_ready = on_get_alive, on_get_ready

    def _ask(self, answer: Future[bool]) -> None:
        try:
            with self._store.reading() as connection:
                connection.execute(select(clients.c.client_id).limit(1)).first()
            answer.set_result(True)
        except Exception:  # noqa: BLE001 - whatever it is, the service is not ready
            answer.set_result(False)


class Metrics:
    """Counts requests, keys and failed logins, but not by client; also a Falcon middleware."""

    def __init__(self) -> None:
        # Not at the top: the sandbox starts often, and the variable has to be set before.
        from prometheus_client import CollectorRegistry, Counter, Histogram

        own: Any = {"registry": CollectorRegistry()}
        labels = ["path", "status"]
        self._requests = Counter("dkimctl_http_requests", "Requests answered.", labels, **own)
        name, text = "dkimctl_http_request_duration_seconds", "Time to answer a request."
        self._seconds = Histogram(name, text, labels[:1], buckets=_SECONDS, **own)
        self._keys = Counter("dkimctl_keys_made", "Keys made.", ["key_len"], **own)
        text = "Logins with wrong credentials."
        self._failed_logins = Counter("dkimctl_failed_logins", text, **own)

    @staticmethod
    def if_shared() -> Metrics | None:
        """Metrics if the environment names the directory where processes count together."""
        return Metrics() if os.environ.get(_DIRECTORY) else None

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        request.context.metrics_started = time.perf_counter()

    def process_response(
        self, request: falcon.Request, response: falcon.Response, *_: object
    ) -> None:
        path = request.uri_template or "other"
        self._requests.labels(path, response.status_code).inc()
        self._seconds.labels(path).observe(time.perf_counter() - request.context.metrics_started)
        if request.context.get("failed_login"):
            self._failed_logins.inc()

    def count_keys(self, make_key: KeyMaker) -> KeyMaker:
        """`make_key`, counting the keys that it makes."""

        def make_and_count(key_len: int) -> KeyPair:
            pair = make_key(key_len)
            self._keys.labels(key_len).inc()
            return pair

        return make_and_count


@contextmanager
def serving_metrics(bind: str, open_store: Callable[[], Store]) -> Iterator[None]:
    """Answer Prometheus at the address `bind`, such as 127.0.0.1:9100, with what all processes
    started in the block have counted, and with the clients in the database.

    Processes count in files: those of a process that has ended stay, as counters must not go back.
    Raises UsageError.
    """
    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(
            "in --metrics-bind: this is not an address and a port",
            hint="write them as 127.0.0.1:9100, or [::1]:9100",
        )
    parent = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK | os.X_OK) else None  # no disk to be full
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="dkimctl-metrics-", dir=parent)
        os.environ[_DIRECTORY] = stack.enter_context(temporary)
        stack.callback(os.environ.pop, _DIRECTORY)
        from prometheus_client import CollectorRegistry, multiprocess, start_http_server

        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        registry.register(_ClientsByState(open_store))
        what = f"in --metrics-bind: cannot listen on {host} port {port}"
        hint = "choose another port, or an address of this machine"
        with os_errors_as(UsageError, what, hint=hint):
            server, _ = start_http_server(int(port), host.strip("[]"), registry)
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        yield


class _ClientsByState:
    """What the database has at the time of a scrape; nothing if it cannot be read.

    It is opened for each, so that worker processes that are forked inherit no connection.
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        query = select(clients.c.state, func.count().label("number")).group_by(clients.c.state)
        try:
            with closing(self._open_store()) as store, store.reading() as connection:
                numbers = {row.state: row.number for row in connection.execute(query)}
        except UsageError:
            return
        by_state = GaugeMetricFamily("dkimctl_clients", "Clients by state.", labels=["state"])
        for state in ClientState:
            by_state.add_metric([state], numbers.get(state, 0))
        yield by_state
