"""Metrics for Prometheus at /metrics: requests, keys, clients and logins, without client IDs.

If PROMETHEUS_MULTIPROC_DIR names a directory, all processes that use it count together. It must
be set before this module is imported: see `sharing_metrics`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

import falcon
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from dkimctl.errors import UsageError
from dkimctl.service.clients import ClientState
from dkimctl.service.database import Store
from dkimctl.service.http.addresses import Network, is_in, peer_address
from dkimctl.service.http.metrics_sharing import DIRECTORY
from dkimctl.service.key_pairs import KeyMaker, KeyPair
from dkimctl.service.schema import clients

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30)
_FORWARDED = tuple(
    f"HTTP_{name}"
    for name in ("X_FORWARDED_FOR", "X_FORWARDED_PROTO", "X_REAL_IP", "FORWARDED", "VIA")
)


class Metrics:
    """The metrics of an application on `store`; also the Falcon middleware that counts requests."""

    def __init__(self, store: Store) -> None:
        # In the text format they would be metrics of their own.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = CollectorRegistry()
        self._requests = Counter(
            "dkimctl_http_requests",
            "Requests answered.",
            ["path", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "dkimctl_http_request_duration_seconds",
            "Time to answer a request.",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._keys = Counter("dkimctl_keys_made", "Keys made.", ["key_len"], registry=registry)
        self._failed_logins = Counter(
            "dkimctl_failed_logins", "Logins with wrong credentials.", registry=registry
        )
        if os.environ.get(DIRECTORY):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        registry.register(_DatabaseCollector(store))
        self._registry = registry

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        request.context.metrics_started = time.perf_counter()

    def process_response(
        self,
        request: falcon.Request,
        response: falcon.Response,
        _resource: object,
        _succeeded: bool,
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

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def resource(self, networks: Sequence[Network]) -> MetricsResource:
        """GET /metrics, for peers in `networks` alone."""
        return MetricsResource(self, networks)


class MetricsResource:
    """GET /metrics, for peers in `networks` alone; for others there is no such path.

    What a proxy has passed on is refused, too: metrics are those of one machine, and a proxy on
    the same machine would open them to everybody.
    """

    protected = False
    method = "GET"

    def __init__(self, metrics: Metrics, networks: Sequence[Network]) -> None:
        self._metrics = metrics
        self._networks = networks

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        is_forwarded = any(name in request.env for name in _FORWARDED)
        if is_forwarded or not is_in(peer_address(request.env), self._networks):
            raise falcon.HTTPNotFound
        response.data = self._metrics.render()
        response.content_type = _CONTENT_TYPE

    on_head = on_get


class _DatabaseCollector(Collector):
    """What the database has at the time of a scrape; nothing if it cannot be read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        try:
            states = _count_clients(self._store)
        except UsageError:
            return
        by_state = GaugeMetricFamily("dkimctl_clients", "Clients by state.", labels=["state"])
        for state in ClientState:
            by_state.add_metric([state], states.get(state, 0))
        yield by_state


def _count_clients(store: Store) -> Mapping[str, int]:
    query = select(clients.c.state, func.count().label("number")).group_by(clients.c.state)
    with store.reading() as connection:
        return {row.state: row.number for row in connection.execute(query)}
