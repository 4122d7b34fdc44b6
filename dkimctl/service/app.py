"""The WSGI application: its routes and middleware."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from wsgiref.types import WSGIApplication

import falcon
import falcon.media

from dkimctl.errors import DkimctlError, naming
from dkimctl.service.access_log import AccessLog, LogHandler, TrustedProxies
from dkimctl.service.database import Store, StoreUnavailable, open_key_store
from dkimctl.service.health import HealthResource, Metrics, ReadyResource
from dkimctl.service.key_pairs import KeyMaker, KeyQueue, make_key
from dkimctl.service.location import read_settings
from dkimctl.service.registrations import Registrar
from dkimctl.service.resources import (
    Bodies,
    DescriptionResource,
    DkimResource,
    Gate,
    SendResource,
    TokenResource,
    add_error_handlers,
)
from dkimctl.text import printable

_MAX_WAITING = 64  # requests that wait for keys; the other threads of the server answer the rest
_KEYS_WITHIN = 20.0  # seconds; clients give up after 30
_GUNICORN_GIVES_UP = 4  # with this exit status of a worker, it does not start another one
_RETRY = 1.0  # seconds
_ENTRY = 2048  # octets; the longest names take about 600
_MIN_BODY = 128 * 1024
_MAX_BODY = 1024 * 1024


def create_app(
    store: Store | None = None,
    *,
    max_domains: int = 50,  # in one registration request
    max_body: int | None = None,  # octets of any request; None: enough for `max_domains`
    max_waiting: int = _MAX_WAITING,
    key_threads: int | None = None,
    threads: int = 256,  # requests that the server answers at once: an unfinished body keeps one
    clock: Callable[[], float] = time.time,
    make_key: KeyMaker = make_key,
    proxies: TrustedProxies | None = None,  # logs requests
    metrics: Metrics | None = None,  # counts them
) -> WSGIApplication:
    """The service as a WSGI callable: both hosts of the interface in one.

    Without a `store`, the data and the other settings are those of the environment, as for
    `granian --interface wsgi --factory dkimctl.service.app:create_app`. For `max_waiting` and
    `key_threads` see KeyQueue.
    """
    if store is None:
        return _app_of_environment()
    if max_body is None:
        max_body = min(max(_ENTRY * max_domains, _MIN_BODY), _MAX_BODY)
    keys = KeyQueue(
        metrics.count_keys(make_key) if metrics else make_key,
        max_waiting=max_waiting,
        limit=_KEYS_WITHIN,
        threads=key_threads,
    )
    middleware: list[Any] = [AccessLog(proxies)] if proxies else []
    middleware += [metrics] if metrics else []
    app = falcon.App(middleware=[*middleware, Gate(store, clock)])
    app.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(
        dumps=json.dumps  # pure ASCII, as echoed names may hold lone surrogates
    )
    add_error_handlers(app)
    # Some threads are left for requests without a body, if there are many.
    at_once = threads * 3 // 4 if threads >= 16 else threads
    bodies = Bodies(max_body, at_once)
    app.add_route("/oauth2/token", TokenResource(store, clock, bodies))
    registrar = Registrar(store, keys.make_all, clock)
    app.add_route("/domain/dkim", DkimResource(registrar, max_domains, bodies))
    app.add_route("/send/{delivery_id}", SendResource(store))
    app.add_route("/openapi.yaml", DescriptionResource())
    app.add_route("/healthz", HealthResource())
    app.add_route("/readyz", ReadyResource(store))
    return app


def _app_of_environment() -> WSGIApplication:
    """For a WSGI server of the operator's choice."""
    proxies = "DKIMCTL_SERVICE_TRUSTED_PROXIES"
    try:
        settings = read_settings()
        with naming(proxies):
            addresses = os.environ.get(proxies, "").split(",")
            trusted = TrustedProxies(text for text in addresses if text.strip())
        store = open_key_store(settings.location)
    except DkimctlError as error:
        sys.stderr.write(f"dkimctl: {printable(error.message)}\n")
        sys.stderr.write(f"hint: {printable(error.hint)}\n")
        if isinstance(error, StoreUnavailable):  # the server replaces this process
            time.sleep(_RETRY)
            raise SystemExit(1) from None
        raise SystemExit(_GUNICORN_GIVES_UP) from None
    logger = logging.getLogger("dkimctl.service")
    logger.handlers = [LogHandler()]
    logger.propagate = False  # the server may have a log of its own
    return create_app(
        store,
        proxies=trusted,
        metrics=Metrics.if_shared(),
        max_domains=settings.max_domains,
        key_threads=settings.key_threads,
    )
