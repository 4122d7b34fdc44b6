"""Logs one line for each request, without secrets, tokens, headers and bodies."""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import falcon

from dkimctl.service.http.addresses import TrustedProxies
from dkimctl.service.http.log_output import LogFormat, write_line

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_METHOD, _MAX_PATH = 20, 200  # octets


class RequestLog:
    """Falcon middleware: logs each request when it is answered, and gives it an ID.

    The ID is that of the header X-Request-ID, such as a proxy's, or a new one; the answer has it
    as well. `request.context` then has `started` (of time.perf_counter) and `request_id`.
    """

    def __init__(self, log_format: LogFormat, proxies: TrustedProxies) -> None:
        self._log_format = log_format
        self._proxies = proxies

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        request.context.started = time.perf_counter()
        given = request.env.get("HTTP_X_REQUEST_ID", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        request.context.request_id = request_id
        response.set_header("X-Request-ID", request_id)

    def process_response(
        self,
        request: falcon.Request,
        response: falcon.Response,
        _resource: object,
        _succeeded: bool,
    ) -> None:
        seconds = time.perf_counter() - request.context.started
        method = _escaped(request.method, _MAX_METHOD)
        path = _escaped(request.env.get("PATH_INFO", ""), _MAX_PATH)
        status = response.status_code
        body = b"" if request.method == "HEAD" else response.render_body() or b""
        fields = {
            "method": method,
            "path": path,
            "status": status,
            "seconds": round(seconds, 6),
            "bytes": len(body),
            "address": self._proxies.client_address(request.env),
            **_of_client(request.context),
            "request_id": request.context.request_id,
        }
        # Not by way of the module logging, which takes three times as long.
        write_line(self._log_format, "INFO", "request", fields)


def _of_client(context: Any) -> dict[str, Any]:
    """What is known after authentication: the client, and the results of a registration."""
    fields: dict[str, Any] = {}
    if client_id := getattr(context, "client_id", None):
        fields["client_id"] = client_id
    if items := getattr(context, "registered", None):
        fields["entries"] = len(items)
        fields["results"] = dict(sorted(Counter(item["result"]["code"] for item in items).items()))
    return fields


@lru_cache(maxsize=256)
def _escaped(text: str, most: int) -> str:
    """What of a WSGI string fits into a line, percent-encoded (RFC 3986, section 2.1)."""
    return quote(text[:most].encode("latin-1", "replace"))
