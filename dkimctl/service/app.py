"""The WSGI application: its routes and middleware."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.util import Finalize
from typing import Any
from wsgiref.types import WSGIApplication

import falcon
import falcon.media

from dkimctl.errors import DkimctlError, naming
from dkimctl.service import resources
from dkimctl.service.access_log import AccessLog, LogHandler, TrustedProxies
from dkimctl.service.database import Store, StoreUnavailable, open_key_store
from dkimctl.service.health import HealthEndpoints, Metrics
from dkimctl.service.key_pairs import KeyMaker, KeyQueue, make_key
from dkimctl.service.location import default_location
from dkimctl.settings.values import integer
from dkimctl.text import printable

_MAX_WAITING = 64  # requests that wait for keys; the other threads of the server answer the rest
_KEYS_WITHIN = 20.0  # seconds; clients give up after 30
_GUNICORN_GIVES_UP = 4  # with this exit status of a worker, it does not start another one
_RETRY = 1.0  # seconds
# What the environment says where another server runs the service; 0 is the default.
_SETTINGS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "DKIMCTL_SERVICE_MAX_DOMAINS": ("max_domains", integer(0, 10_000)),
    "DKIMCTL_SERVICE_KEY_THREADS": ("key_threads", integer(0, 1024)),
    "DKIMCTL_SERVICE_TRUSTED_PROXIES": (
        "proxies", lambda text: TrustedProxies(filter(str.strip, text.split(",")))
    ),
}  # fmt: skip


def create_app(
    store: Store | None = None,
    *,
    max_domains: int = 50,  # in one registration request
    key_threads: int | None = None,  # None: one for each processor
    threads: int = 256,  # requests that the server answers at once
    clock: Callable[[], float] = time.time,
    make_key: KeyMaker = make_key,
    proxies: TrustedProxies | None = None,  # logs requests
    metrics: Metrics | None = None,  # counts them
) -> WSGIApplication:
    """The service as a WSGI callable: both hosts of the interface in one.

    Without a `store`, the data and the other settings are those of the environment, as for
    `granian --interface wsgi --factory dkimctl.service.app:create_app`.
    """
    if store is None:
        return _app_of_environment()
    make = metrics.count_keys(make_key) if metrics else make_key
    keys = KeyQueue(make, max_waiting=_MAX_WAITING, limit=_KEYS_WITHIN, threads=key_threads)
    api = resources.Api(store, keys.make_all, clock, max_domains=max_domains, threads=threads)
    middleware: list[Any] = [AccessLog(proxies) if proxies else None, metrics, api]
    app = falcon.App(middleware=[*filter(None, middleware)])
    app.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(
        dumps=json.dumps  # pure ASCII, as echoed names may hold lone surrogates
    )
    app.set_error_serializer(resources.serialize_error)
    app.add_error_handler(Exception, resources.answer_unexpected)
    health = HealthEndpoints(store)
    for path, (suffix, _) in resources.ENDPOINTS.items():
        app.add_route(path, health if suffix in ("alive", "ready") else api, suffix=suffix)
    return app


def load_app(open_store: Callable[[], Store], **settings: Any) -> WSGIApplication:
    """The application of a process of `dkimctl serve`."""
    store = open_store()
    # At the end of this process SQLite then writes back its log, even one that was deleted.
    Finalize(None, store.close, exitpriority=1)
    return create_app(store, metrics=Metrics.if_shared(), **settings)


def _app_of_environment() -> WSGIApplication:
    """For a WSGI server of the operator's choice."""
    settings: dict[str, Any] = {}
    try:
        for variable, (name, read) in _SETTINGS.items():
            with naming(variable):
                if (text := os.environ.get(variable)) and (value := read(text)):
                    settings[name] = value
        store = open_key_store(default_location())
    except DkimctlError as error:
        sys.stderr.write(f"dkimctl: {printable(error.message)}\nhint: {printable(error.hint)}\n")
        if isinstance(error, StoreUnavailable):  # the server replaces this process
            time.sleep(_RETRY)
            raise SystemExit(1) from None
        raise SystemExit(_GUNICORN_GIVES_UP) from None
    logger = logging.getLogger("dkimctl.service")
    logger.handlers = [LogHandler()]
    logger.propagate = False  # the server may have a log of its own
    settings = {"proxies": TrustedProxies(), "metrics": Metrics.if_shared(), **settings}
    return create_app(store, **settings)
