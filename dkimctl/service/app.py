"""The WSGI application: routes, middleware and error answers."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIApplication

import falcon
import falcon.media

from dkimctl.service.authorization import BearerAuthentication
from dkimctl.service.body import RequestRefused, answer_refused_request
from dkimctl.service.dkim_resource import DkimResource
from dkimctl.service.failures import told
from dkimctl.service.keys import KeyMaker, make_key
from dkimctl.service.registrar import Registrar
from dkimctl.service.send_resource import SendResource
from dkimctl.service.store import Store
from dkimctl.service.token_resource import TokenRefused, TokenResource, answer_refusal

_logger = logging.getLogger(__name__)

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

    `max_domains` bounds the entries of one registration request and `max_body` the octets
    of any request body; `clock` gives seconds since the epoch.
    """
    middleware: list[Any] = [BearerAuthentication(store, clock), OneMethodEach(), RenderInTime()]
    app = falcon.App(middleware=middleware)
    app.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(
        dumps=json.dumps  # pure ASCII, as what is echoed may hold halves of surrogate pairs
    )
    app.set_error_serializer(_serialize_error)
    app.add_error_handler(TokenRefused, answer_refusal)
    app.add_error_handler(RequestRefused, answer_refused_request)
    app.add_error_handler(Exception, _answer_unexpected)
    app.add_route("/oauth2/token", TokenResource(store, clock, max_body))
    registrar = Registrar(store, make_key, clock)
    app.add_route("/domain/dkim", DkimResource(registrar, max_domains, max_body))
    app.add_route("/send/{delivery_id}", SendResource(store))
    return app


class OneMethodEach:
    """Falcon middleware: 405 for every method but the resource's, OPTIONS among them."""

    def process_resource(
        self,
        request: falcon.Request,
        _response: falcon.Response,
        resource: Any,
        _params: dict[str, Any],
    ) -> None:
        if request.method != resource.method:
            raise falcon.HTTPMethodNotAllowed([resource.method])


class RenderInTime:
    """Falcon middleware: renders an answer where a failure still becomes an answer of its own."""

    def process_response(
        self,
        _request: falcon.Request,
        response: falcon.Response,
        _resource: object,
        _succeeded: bool,
    ) -> None:
        response.render_body()


def _serialize_error(
    _request: falcon.Request, response: falcon.Response, error: falcon.HTTPError
) -> None:
    """The error body of interface 7: JSON with `message`."""
    response.media = {"message": error.description or HTTPStatus(error.status_code).phrase}


def _answer_unexpected(
    _request: falcon.Request,
    _response: falcon.Response,
    error: Exception,
    _params: dict[str, Any],
) -> None:
    _logger.error("a request failed: %s", told(error))
    raise falcon.HTTPInternalServerError(description="Internal Server Error")
