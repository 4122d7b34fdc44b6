"""The WSGI application: its routes and middleware."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from wsgiref.types import WSGIApplication

import falcon
import falcon.media

from dkimctl.errors import DkimctlError
from dkimctl.service.database import Store, StoreUnavailable
from dkimctl.service.http.addresses import TrustedProxies
from dkimctl.service.http.authorization import BearerAuthentication
from dkimctl.service.http.description import DescriptionResource
from dkimctl.service.http.errors import add_error_handlers
from dkimctl.service.http.failed_logins import LoginGuard
from dkimctl.service.http.health import HealthResource, ReadyResource
from dkimctl.service.http.log_output import LogFormat, log_to_stderr
from dkimctl.service.http.metrics_sharing import require_directory
from dkimctl.service.http.monitoring import Monitoring, monitoring_from_environment
from dkimctl.service.http.request_log import RequestLog
from dkimctl.service.http.resources import DkimResource, SendResource, TokenResource
from dkimctl.service.key_pairs import KeyMaker, KeyQueue, make_key
from dkimctl.service.registrations import Registrar
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.service.http.metrics import Metrics

_MAX_DOMAINS = 50
_MAX_WAITING = 6  # requests that wait for keys; the other threads of the server answer the rest
_KEYS_WITHIN = 20.0  # seconds; clients give up after 30
_GUNICORN_GIVES_UP = 4  # with this exit status of a worker, it does not start another one
_RETRY = 1.0  # seconds
_ENTRY = 2048  # octets; the longest names take about 600
_MIN_BODY = 128 * 1024
_MAX_BODY = 1024 * 1024  # less than the HTTP server's limit, so that a larger one gets the reason


def create_app(
    store: Store | None = None,
    *,
    max_domains: int = _MAX_DOMAINS,
    max_body: int | None = None,
    max_waiting: int = _MAX_WAITING,
    key_threads: int | None = None,
    clock: Callable[[], float] = time.time,
    make_key: KeyMaker = make_key,
    monitoring: Monitoring | None = None,
) -> WSGIApplication:
    """The service as a WSGI callable: both hosts of the interface in one.

    Without a `store`, the data and the other settings are those of the environment, as for
    `gunicorn 'dkimctl.service.app:create_app()'`. `max_domains` limits the entries of one
    registration request, `max_body` the octets of any request body; by default, that follows from
    `max_domains`. For `max_waiting`, `key_threads` see KeyQueue. `clock` returns
    seconds since the epoch. With `monitoring`, requests are counted and logged, and proxies may be
    trusted.
    """
    if store is None:
        return _app_of_environment()
    if max_body is None:
        max_body = min(max(_ENTRY * max_domains, _MIN_BODY), _MAX_BODY)
    metrics = _start_metrics(store) if monitoring else None
    keys = KeyQueue(
        metrics.count_keys(make_key) if metrics else make_key,
        max_waiting=max_waiting,
        limit=_KEYS_WITHIN,
        threads=key_threads,
    )
    middleware: list[Any] = [BearerAuthentication(store, clock), AllowedMethod(), EarlyRendering()]
    app = falcon.App(middleware=[*_watchers(monitoring, metrics), *middleware])
    app.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(
        dumps=json.dumps  # pure ASCII, as echoed names may hold lone surrogates
    )
    add_error_handlers(app)
    proxies = monitoring.proxies if monitoring else TrustedProxies()
    guard = LoginGuard(store, clock)
    app.add_route("/oauth2/token", TokenResource(store, clock, max_body, guard, proxies))
    registrar = Registrar(store, keys.make_all, clock)
    app.add_route("/domain/dkim", DkimResource(registrar, max_domains, max_body))
    app.add_route("/send/{delivery_id}", SendResource(store))
    app.add_route("/openapi.yaml", DescriptionResource())
    app.add_route("/healthz", HealthResource())
    app.add_route("/readyz", ReadyResource(store))
    if monitoring and metrics:
        app.add_route("/metrics", metrics.resource(monitoring.metrics_from))
    return app


def _start_metrics(store: Store) -> Metrics:
    from dkimctl.service.http.metrics import Metrics  # not for the sandbox, which starts often

    return Metrics(store)


def _watchers(monitoring: Monitoring | None, metrics: Metrics | None) -> list[Any]:
    """The middleware that comes first, so that it sees the answer as it is in the end."""
    watchers: list[Any] = []
    if monitoring and monitoring.requests:
        watchers.append(RequestLog(monitoring.requests, monitoring.proxies))
    return [*watchers, metrics] if metrics else watchers


def _app_of_environment() -> WSGIApplication:
    from dkimctl.service.database import open_key_store
    from dkimctl.service.location import read_settings

    try:
        require_directory()
        settings, monitoring = read_settings(), monitoring_from_environment()
        store = open_key_store(settings.location)
    except DkimctlError as error:
        sys.stderr.write(f"dkimctl: {printable(error.message)}\n")
        sys.stderr.write(f"hint: {printable(error.hint)}\n")
        if isinstance(error, StoreUnavailable):  # gunicorn replaces this process
            time.sleep(_RETRY)
            raise SystemExit(1) from None
        raise SystemExit(_GUNICORN_GIVES_UP) from None
    log_to_stderr(monitoring.requests or LogFormat.TEXT)
    return create_app(
        store,
        monitoring=monitoring,
        max_domains=settings.max_domains,
        key_threads=settings.key_threads,
    )


class AllowedMethod:
    """Falcon middleware: 405 for any method but the resource's, including OPTIONS."""

    def process_resource(
        self,
        request: falcon.Request,
        _response: falcon.Response,
        resource: Any,
        _params: dict[str, Any],
    ) -> None:
        allowed = ["GET", "HEAD"] if resource.method == "GET" else [resource.method]
        if request.method not in allowed:
            raise falcon.HTTPMethodNotAllowed(allowed)


class EarlyRendering:
    """Falcon middleware: renders the body while an error can still be answered with a 500."""

    def process_response(
        self,
        _request: falcon.Request,
        response: falcon.Response,
        _resource: object,
        _succeeded: bool,
    ) -> None:
        response.render_body()
