"""HTTP as the client needs it; the one module that knows the HTTP library."""

from __future__ import annotations

import functools
import logging
import math
import re
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import httpx

from dkimctl import __version__
from dkimctl.client.retry_after import parse_retry_after
from dkimctl.client.watch import Line, Watch
from dkimctl.errors import DkimctlError, MaybeProcessed, NoService, NotProcessed, UsageError
from dkimctl.models import Secret

MAX_BODY = 16 * 1024 * 1024  # bytes; a full batch is answered in well under 1 MiB

_HEADERS = {
    "User-Agent": f"dkimctl/{__version__}",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is packed can be far larger than MAX_BODY
}
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
    """What to send. `authorization` is the header's value (RFC 9110 section 11.6.2)."""

    method: str
    url: str
    authorization: Secret
    content_type: str | None = None
    body: bytes | None = None


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
        self._watch = None if timeout == math.inf else Watch(timeout)
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
        verify = _trust(ca_bundle)

        def make() -> httpx.Client:
            # Plain http is for loopback alone (the settings see to it), where a proxy from the
            # environment would be handed the bearer token. It has no TLS to verify.
            direct = httpx.HTTPTransport(verify=False, trust_env=False)
            mounts = {"http://": direct}
            return httpx.Client(
                verify=verify, proxy=proxy, mounts=mounts, timeout=timeout, headers=_HEADERS
            )

        client = cls(make, timeout)
        try:
            client._client()  # so that mistakes are found now
        except (ValueError, httpx.InvalidURL, ImportError):
            # The text could hold the proxy's password.
            raise UsageError(
                "the proxy address is not usable",
                hint="write http://HOST:PORT in --proxy or in HTTPS_PROXY",
            ) from None
        return client

    @classmethod
    def in_process(cls, app: Callable[..., Any]) -> Self:
        """Let the WSGI application `app` answer in place of the network."""
        transport = httpx.WSGITransport(app, raise_app_exceptions=False)
        return cls(lambda: httpx.Client(transport=transport, trust_env=False, headers=_HEADERS))

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
            raise _unreachable(url, error) from None
        except httpx.TimeoutException:
            raise _too_slow(url) from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise _too_slow(url) if line.finish() else _broken_off(url, error) from None
        except DkimctlError as error:
            raise error.with_traceback(None) from None  # what it leads through holds the headers
        finally:
            was_cut = line.finish()
        if was_cut:  # what ends with the connection would look whole
            raise _too_slow(url)
        return answer

    def _exchange(self, request: HttpRequest, line: Line) -> HttpResponse:
        headers = {"Authorization": request.authorization.reveal()}
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        with self._client().stream(
            request.method,
            request.url,
            headers=headers,
            content=request.body,
            extensions={"trace": functools.partial(self._trace, line)},
        ) as response:
            body = _read(response, request.url)
            return HttpResponse(response.status_code, body, _retry_after(response))

    def _trace(self, line: Line, event: str, info: dict[str, Any]) -> None:
        """What httpx calls at each step of a request."""
        if event.endswith(_CONNECTED):
            line.add(info["return_value"].get_extra_info("socket"))
        elif event.endswith(_UNBOUNDED):
            line.expect(time.monotonic() + self._timeout)

    def _line(self) -> Line:
        line: Line | None = getattr(self._of_thread, "line", None)
        if line is None:
            line = self._of_thread.line = Line() if self._watch is None else self._watch.line()
        return line

    def _client(self) -> httpx.Client:
        client: httpx.Client | None = getattr(self._of_thread, "client", None)
        if client is None:
            client = self._of_thread.client = self._make()
            self._clients.append(client)
        return client


def _trust(ca_bundle: str | None) -> ssl.SSLContext:
    """The certificates to trust: `ca_bundle`, else SSL_CERT_FILE, else the usual ones."""
    try:
        if ca_bundle is not None:
            return ssl.create_default_context(cafile=ca_bundle)
        return httpx.create_ssl_context()
    except (OSError, ValueError) as error:
        source = ca_bundle or "that SSL_CERT_FILE, SSL_CERT_DIR or SSLKEYLOGFILE names"
        raise UsageError(
            f"cannot use the certificates {source}: {error}",
            hint="give a file of PEM certificates in --ca-bundle",
        ) from error


def _read(response: httpx.Response, url: str) -> bytes:
    """The whole body, up to MAX_BODY."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise MaybeProcessed(
            f"the answer of {_host(url)} is packed, though it was asked not to be",
            hint="check the URLs of the profile, and any proxy in between",
        )
    chunks, size = [], 0
    for chunk in response.iter_raw():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BODY:
            raise MaybeProcessed(
                f"the answer of {_host(url)} is larger than {MAX_BODY >> 20} MiB",
                hint="check the URLs of the profile",
            )
    return b"".join(chunks)


def _too_slow(url: str) -> MaybeProcessed:
    return MaybeProcessed(
        f"{_host(url)} did not answer in time", hint="try again later, or raise --timeout"
    )


def _broken_off(url: str, error: Exception) -> MaybeProcessed:
    # The text of the others may quote the answer, and that the request: its token and all.
    why = f": {error}" if isinstance(error, httpx.NetworkError) else ", or is not HTTP"
    return MaybeProcessed(
        f"the answer of {_host(url)} broke off{why}",
        hint="try again later, and check the URLs of the profile if it persists",
    )


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return parse_retry_after(value, response.headers.get("Date", ""), time.time())


def _unreachable(url: str, error: Exception) -> NotProcessed:
    message = f"cannot reach {_host(url)}: {_why(error)}"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return NoService(
            message, hint="for a private certificate authority, name its file in --ca-bundle"
        )
    return NotProcessed(
        message,
        hint="check the network, the proxy and the URLs of the profile (dkimctl login --help)",
    )


def _why(error: Exception) -> str:
    """The reason of an error, where its text can hold neither a header nor an answer."""
    if isinstance(error, httpx.ConnectError | httpx.TimeoutException | UnicodeError):
        return str(error)
    if isinstance(error, httpx.ProxyError):
        return f"the proxy refuses{_status_in(error)}"
    return "the request cannot be sent as it is"


def _status_in(error: Exception) -> str:
    """The status of a proxy's answer; its words could quote what the proxy was sent."""
    first, _, _ = str(error).partition(" ")
    return f" ({first})" if re.fullmatch("[1-5][0-9][0-9]", first) else ""


def _host(url: str) -> str:
    return urlsplit(url).netloc
