"""The WSGI application: its routes and middleware."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from wsgiref.types import WSGIApplication

import falcon
import falcon.media

from dkimctl.service.database.store import Store
from dkimctl.service.http.authorization import BearerAuthentication
from dkimctl.service.http.errors import add_error_handlers
from dkimctl.service.http.resources import DkimResource, SendResource, TokenResource
from dkimctl.service.keys.pairs import KeyMaker, make_key
from dkimctl.service.registrar import Registrar

_MAX_DOMAINS = 50
_MAX_BODY = 1024 * 1024


def create_app(
    store: Store,
    *,
    max_domains: int = _MAX_DOMAINS,
    max_body: int = _MAX_BODY,
    clock: Callable[[], float] = time.time,
    make_key: KeyMaker = make_key,
) -> WSGIApplication:
    """The service on `store` as a WSGI callable: both hosts of the interface in one.

    `max_domains` limits the entries of one registration request, `max_body` the octets of any
    request body. `clock` returns seconds since the epoch.
    """
    middleware: list[Any] = [BearerAuthentication(store, clock), AllowedMethod(), EarlyRendering()]
    app = falcon.App(middleware=middleware)
    app.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(
        dumps=json.dumps  # pure ASCII, as echoed names may hold lone surrogates
    )
    add_error_handlers(app)
    app.add_route("/oauth2/token", TokenResource(store, clock, max_body))
    registrar = Registrar(store, make_key, clock)
    app.add_route("/domain/dkim", DkimResource(registrar, max_domains, max_body))
    app.add_route("/send/{delivery_id}", SendResource(store))
    return app


class AllowedMethod:
    """Falcon middleware: 405 for any method but the resource's, including OPTIONS."""

    def process_resource(
        self,
        request: falcon.Request,
        _response: falcon.Response,
        resource: Any,
        _params: dict[str, Any],
    ) -> None:
        if request.method != resource.method:
            raise falcon.HTTPMethodNotAllowed([resource.method])


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
