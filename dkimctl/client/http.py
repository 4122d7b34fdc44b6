"""HTTP as the client needs it: one request, one whole answer, in bounds."""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import httpx

from dkimctl.client import connections
from dkimctl.client.connections import address_elsewhere, require_close_notify
from dkimctl.client.deadline import DeadlineThread, ResponseDeadline
from dkimctl.client.failures import broken_off, host_of, not_loopback, too_slow, unreachable
from dkimctl.client.retry_after import parse_retry_after
from dkimctl.errors import DkimctlError, MaybeProcessed
from dkimctl.models.secret import Secret

MAX_BODY = 16 * 1024 * 1024  # bytes

_log = logging.getLogger("dkimctl.http")
# What httpx raises before a request has left: it certainly had no effect.
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.InvalidURL,
    UnicodeError,  # a host name that cannot be looked up
)
# Steps of a request, as the extension `trace` of httpx names them: those that give a new
# connection, and those whose reads httpx bounds one by one and not together.
_CONNECTED = (".connect_tcp.complete", ".start_tls.complete")
_UNBOUNDED = (".start_tls.started", ".receive_response_headers.started")


class HttpRequest(NamedTuple):
    """What to send. `authorization` is the header's value (RFC 9110 section 11.6.2), `largest` how
    many bytes the answer's body may have.

    After a request that `is_last` the connection ends: what follows its answer, by mistake or
    not, is not taken for that to another request.
    """

    method: str
    url: str
    authorization: Secret
    content_type: str | None = None
    body: bytes | None = None
    is_last: bool = True
    largest: int = MAX_BODY


class HttpResponse(NamedTuple):
    """An answer: its status and its whole body, which shows in no repr: it may hold a token.

    `retry_after` is for how many seconds the service asks to be left alone, if it does.
    """

    status: int
    body: bytes
    retry_after: float | None = None

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {len(self.body)} bytes)"


class HttpClient:
    """Connections that follow no redirects, and bounds on what is read.

    Each thread has a client of its own, which `make` makes: one for all looks at every
    connection before each request, which is a tenth of the time of a long run.
    """

    def __init__(self, make: Callable[[], httpx.Client], timeout: float = math.inf) -> None:
        self._make = make
        self._timeout = timeout
        self._watch = None if timeout == math.inf else DeadlineThread(timeout)
        self._of_thread = threading.local()
        self._clients: list[httpx.Client] = []

    @classmethod
    def over_network(
        cls, *, timeout: float, ca_bundle: str | None = None, proxy: str | None = None
    ) -> Self:
        """TLS is always verified, with `ca_bundle` (a PEM file) if given. `timeout` is in
        seconds, for each step of a request and for the whole of its answer, head and body.

        Raises UsageError for a bad bundle or proxy.
        """
        return cls(connections.over_network(timeout, ca_bundle, proxy), timeout)

    @classmethod
    def in_process(cls, app: Callable[..., Any]) -> Self:
        """Let the WSGI application `app` answer in place of the network."""
        return cls(connections.in_process(app))

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request and read its answer, whatever its status.

        Raises NotProcessed when the request did not leave, MaybeProcessed when no whole
        answer came back.
        """
        started = time.monotonic()
        outcome = "no answer"
        try:
            answer = self._answer(request)
            outcome = str(answer.status)
        finally:
            elapsed, sent = (time.monotonic() - started) * 1000, len(request.body or b"")
            where = f"{request.method} {request.url}"
            _log.info("%s: %s, %.0f ms, %d bytes sent", where, outcome, elapsed, sent)
        return answer

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        for client in self._clients:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: HttpRequest) -> HttpResponse:
        url, line = request.url, self._line()
        try:
            answer = self._exchange(request, line)
        except _NOT_SENT as error:
            raise unreachable(url, error) from None
        except httpx.TimeoutException:
            raise too_slow(url) from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise too_slow(url) if line.finish() else broken_off(url, error) from None
        except DkimctlError as error:
            raise error.with_traceback(None) from None  # what it leads through holds the headers
        finally:
            was_cut = line.finish()
        if was_cut:  # what ends with the connection would look whole
            raise too_slow(url)
        return answer

    def _exchange(self, request: HttpRequest, line: ResponseDeadline) -> HttpResponse:
        headers = {"Authorization": request.authorization.reveal()}
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        if request.is_last:
            headers["Connection"] = "close"
        with self._client().stream(
            request.method,
            request.url,
            headers=headers,
            content=request.body,
            extensions={"trace": functools.partial(self._trace, request, line)},
        ) as response:
            body = _read(response, request)
            return HttpResponse(response.status_code, body, _retry_after(response))

    def _trace(
        self, request: HttpRequest, line: ResponseDeadline, event: str, info: dict[str, Any]
    ) -> None:
        """What httpx calls at each step of a request."""
        if event.endswith(_CONNECTED):
            stream = info["return_value"]
            connection = stream.get_extra_info("socket")
            if request.url.startswith("http:") and (address := address_elsewhere(connection)):
                stream.close()  # `localhost` can be anywhere
                raise not_loopback(request.url, address)
            require_close_notify(connection)
            line.add(connection)
        elif event.endswith(_UNBOUNDED):
            line.expect(time.monotonic() + self._timeout)

    def _line(self) -> ResponseDeadline:
        line: ResponseDeadline | None = getattr(self._of_thread, "line", None)
        if line is None:
            line = self._of_thread.line = (
                ResponseDeadline() if self._watch is None else self._watch.line()
            )
        return line

    def _client(self) -> httpx.Client:
        client: httpx.Client | None = getattr(self._of_thread, "client", None)
        if client is None:
            client = self._of_thread.client = self._make()
            self._clients.append(client)
        return client


def _read(response: httpx.Response, request: HttpRequest) -> bytes:
    """The whole body, in bounds."""
    host = host_of(request.url)
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise MaybeProcessed(
            f"the answer of {host} is packed, though it was asked not to be",
            hint="check the URLs of the profile, and any proxy in between",
        )
    body = bytearray()  # a list of what comes byte by byte takes 60 times as much
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > request.largest:
            raise MaybeProcessed(
                f"the answer of {host} is larger than {_size(request.largest)}",
                hint="check the URLs of the profile",
            )
    return bytes(body)


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return parse_retry_after(value, response.headers.get("Date", ""), time.time())


def _size(octets: int) -> str:
    return f"{octets >> 20} MiB" if octets >= 1 << 20 else f"{octets >> 10} KiB"
