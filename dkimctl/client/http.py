"""HTTP as the client needs it: one request, one complete response of limited size and duration."""

from __future__ import annotations

import functools
import logging
import math
import re
import threading
import time
from collections.abc import Callable
from datetime import UTC
from typing import Any, NamedTuple, Self

import httpx

from dkimctl.client.connections import (
    DeadlineThread,
    ResponseDeadline,
    in_process_client_factory,
    network_client_factory,
    remote_address,
    require_close_notify,
)
from dkimctl.client.failures import cut_off, host_of, not_loopback, timed_out
from dkimctl.client.unreachable import origin_of, unreachable
from dkimctl.errors import DkimctlError, MaybeProcessed
from dkimctl.models.secret import Secret

MAX_BODY = 16 * 1024 * 1024  # bytes
_MAX_RETRY_AFTER = 1e9  # seconds

_log = logging.getLogger("dkimctl.http")
# Raised by httpx before a request was sent, so it certainly had no effect.
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
# Events of httpx's `trace` extension: those that yield a new connection, and those that begin
# reads of which httpx limits each but not their sum.
_CONNECTED = (".connect_tcp.complete", ".start_tls.complete")
_READ_STARTED = (".start_tls.started", ".receive_response_headers.started")


class HttpRequest(NamedTuple):
    """What to send. `authorization` is the header's value (RFC 9110 section 11.6.2), `max_body`
    the response's size limit in bytes. A URL that is a secret is not logged.

    A request that `is_last` closes its connection, so that surplus data after its response is
    never taken for the response to another request.
    """

    method: str
    url: str
    authorization: Secret | None
    content_type: str | None = None
    body: bytes | None = None
    is_last: bool = True
    max_body: int = MAX_BODY
    has_secret_url: bool = False


class HttpResponse(NamedTuple):
    """A status and a complete body, which the repr omits because it may contain a token.

    `retry_after` is how many seconds the service asks to wait, if it does; `date` is its Date
    header.
    """

    status: int
    body: bytes
    retry_after: float | None = None
    date: str = ""

    @property
    def sent_at(self) -> float | None:
        """When it was sent by its own clock, in seconds since the epoch, if it says so."""
        return _timestamp(self.date)

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {len(self.body)} bytes)"


class HttpClient:
    """Sends requests, follows no redirects, and limits the size and duration of responses.

    Each thread gets a client of its own from `make_client`: a shared one checks every connection
    before each request, a tenth of the time of a long run.
    """

    def __init__(self, make_client: Callable[[], httpx.Client], timeout: float = math.inf) -> None:
        self._make_client = make_client
        self._timeout = timeout
        self._deadlines = None if timeout == math.inf else DeadlineThread(timeout)
        self._local = threading.local()
        self._clients: list[httpx.Client] = []

    @classmethod
    def over_network(
        cls, *, timeout: float, ca_bundle: str | None = None, proxy: str | None = None
    ) -> Self:
        """A client that always verifies TLS, against `ca_bundle` (a PEM file) if given.

        `timeout` is in seconds, for each step of a request and for its response as a whole.
        Raises UsageError for a bad bundle or proxy, ThreadLimitError.
        """
        return cls(network_client_factory(timeout, ca_bundle, proxy), timeout)

    @classmethod
    def in_process(cls, app: Callable[..., Any]) -> Self:
        """A client of the WSGI application `app`, without a network."""
        return cls(in_process_client_factory(app))

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request and read its response, whatever its status.

        Raises NotProcessed if the request was not sent, MaybeProcessed if no complete response
        was received.
        """
        started = time.monotonic()
        outcome = "no response"
        try:
            response = self._receive(request)
            outcome = str(response.status)
        finally:
            elapsed, sent = (time.monotonic() - started) * 1000, len(request.body or b"")
            url = origin_of(request.url) if request.has_secret_url else request.url
            target = f"{request.method} {url}"
            _log.info("%s: %s, %.0f ms, %d bytes sent", target, outcome, elapsed, sent)
        return response

    def close(self) -> None:
        if self._deadlines is not None:
            self._deadlines.close()
        for client in self._clients:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, request: HttpRequest) -> HttpResponse:
        url, deadline = request.url, self._deadline()
        try:
            response = self._exchange(request, deadline)
        except _NOT_SENT as error:
            raise unreachable(url, error) from None
        except httpx.TimeoutException:
            raise timed_out(url) from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise timed_out(url) if deadline.stop() else cut_off(url, error) from None
        except DkimctlError as error:
            raise error.with_traceback(None) from None  # its frames hold the headers
        finally:
            expired = deadline.stop()
        if expired:  # a body that ends with its connection would pass for complete
            raise timed_out(url)
        return response

    def _exchange(self, request: HttpRequest, deadline: ResponseDeadline) -> HttpResponse:
        headers = {}
        if request.authorization is not None:
            headers["Authorization"] = request.authorization.reveal()
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        if request.is_last:
            headers["Connection"] = "close"
        with self._client().stream(
            request.method,
            request.url,
            headers=headers,
            content=request.body,
            extensions={"trace": functools.partial(self._trace, request, deadline)},
        ) as response:
            body = _read_body(response, request)
            date = response.headers.get("Date", "")
            return HttpResponse(response.status_code, body, _retry_after(response), date)

    def _trace(
        self, request: HttpRequest, deadline: ResponseDeadline, event: str, info: dict[str, Any]
    ) -> None:
        """Called by httpx at each step of a request."""
        if event.endswith(_CONNECTED):
            stream = info["return_value"]
            connection = stream.get_extra_info("socket")
            if request.url.startswith("http:") and (address := remote_address(connection)):
                stream.close()  # `localhost` can resolve to anything
                raise not_loopback(request.url, address)
            require_close_notify(connection)
            deadline.add_connection(connection)
        elif event.endswith(_READ_STARTED):
            deadline.start(time.monotonic() + self._timeout)

    def _deadline(self) -> ResponseDeadline:
        deadline: ResponseDeadline | None = getattr(self._local, "deadline", None)
        if deadline is None:
            deadline = self._local.deadline = (
                ResponseDeadline() if self._deadlines is None else self._deadlines.new_deadline()
            )
        return deadline

    def _client(self) -> httpx.Client:
        client: httpx.Client | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = self._make_client()
            self._clients.append(client)
        return client


def parse_retry_after(value: str, date: str, now: float) -> float | None:
    """How many seconds a Retry-After header (RFC 9110 section 10.2.3) asks to wait, if any.

    `value` is a number of seconds or an HTTP date. A date is compared with the response's own
    Date header, `date`, because the clocks may differ, or else with `now` (seconds since the
    epoch).
    """
    text = value.strip()
    if re.fullmatch("[0-9]+", text):
        return min(float(text), _MAX_RETRY_AFTER)
    retry_at = _timestamp(text)
    if retry_at is None:
        return None
    sent_at = _timestamp(date)
    wait = retry_at - (now if sent_at is None else sent_at)
    return min(max(0.0, wait), _MAX_RETRY_AFTER)


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return parse_retry_after(value, response.headers.get("Date", ""), time.time())


def _timestamp(text: str) -> float | None:
    """An HTTP date (RFC 9110 section 5.6.7) in seconds since the epoch."""
    if not text:
        return None
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # The obsolete forms have no zone and mean UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _read_body(response: httpx.Response, request: HttpRequest) -> bytes:
    host = host_of(request.url)
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise MaybeProcessed(
            f"the response from {host} is compressed, which the request ruled out",
            hint="check the profile's URLs and any proxy in between",
        )
    body = bytearray()  # a list of single bytes would take 60 times the memory
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > request.max_body:
            raise MaybeProcessed(
                f"the response from {host} is larger than {_size(request.max_body)}",
                hint="check the profile's URLs",
            )
    return bytes(body)


def _size(octets: int) -> str:
    return f"{octets >> 20} MiB" if octets >= 1 << 20 else f"{octets >> 10} KiB"
