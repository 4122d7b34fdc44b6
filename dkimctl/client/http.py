"""HTTP as the client needs it: one request, one complete response of limited size and duration."""

from __future__ import annotations

import functools
import ipaddress
import logging
import math
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit
from urllib.request import proxy_bypass as bypasses

from dkimctl import __version__
from dkimctl.addresses import is_loopback
from dkimctl.client import failures
from dkimctl.errors import DkimctlError, MaybeProcessed, ThreadLimitError, UsageError
from dkimctl.models import Secret
from dkimctl.threads import start_daemon

# httpx imports its command line as well if there is click, and that takes a third of the time.
_HIDES_CLICK = "click" not in sys.modules
if _HIDES_CLICK:
    sys.modules["click"] = None  # type: ignore[assignment]
try:
    import httpx
finally:
    if _HIDES_CLICK:
        del sys.modules["click"]

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
_HEADERS = {
    "User-Agent": f"dkimctl/{__version__}",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # a small compressed body can expand to a huge one
}
_CONNECT_TIMEOUT = 10.0  # seconds, for each address of a host


class HttpRequest(NamedTuple):
    """What to send."""

    method: str
    url: str
    authorization: Secret | None  # the header's value (RFC 9110 section 11.6.2)
    content_type: str | None = None
    body: bytes | None = None
    #: Then its connection is closed: no surplus data is taken for the response to another request.
    is_last: bool = True
    max_body: int = MAX_BODY  # of the response
    has_secret_url: bool = False  # which is not logged


class HttpResponse(NamedTuple):
    """A status and a complete body, which the repr omits: it may contain a token."""

    status: int
    body: bytes
    retry_after: float | None = None  # seconds that the service asks to wait
    sent_at: float | None = None  # by its own clock, in seconds since the epoch, if it says so

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {len(self.body)} bytes)"


class HttpClient:
    """Sends requests, follows no redirects, and limits the size and duration of responses.

    Each thread gets a client of its own from `make_client`: a shared one checks every connection
    before each request, a tenth of the time of a long run. Raises ThreadLimitError.
    """

    def __init__(
        self,
        make_client: Callable[[], httpx.Client],
        timeout: float = math.inf,
        proxy_of: Callable[[str], str] = lambda _: "",  # by URL: what messages call its proxy
    ) -> None:
        self._make_client = make_client
        self._timeout = timeout
        self._proxy_of = proxy_of
        self._local = threading.local()
        self._in_threads: list[tuple[httpx.Client, ResponseDeadline]] = []
        self._closed = threading.Event()
        self._watcher = None
        if timeout != math.inf:
            self._watcher = start_daemon(self._watch, "deadlines")
            if self._watcher is None:
                raise ThreadLimitError

    @classmethod
    def over_network(
        cls,
        *urls: str,
        timeout: float,
        ca_bundle: str | None = None,
        proxy: str | None = None,
        proxy_name: str = "",
        proxy_source: object = "",
    ) -> Self:
        """A client that always verifies TLS, against `ca_bundle` (a PEM file) if given.

        `urls`: what it talks to; proxies of the environment are not for this machine. `timeout` is
        in seconds, for each step of a request and for its response as a whole. `proxy_name`: what
        messages call `proxy`, or that of the environment, and `proxy_source` who named it. Raises
        UsageError for a bad bundle or proxy, ThreadLimitError.
        """
        verify = _tls_context(ca_bundle)
        hosts = {host for url in urls if is_loopback(host := urlsplit(url).hostname or "")}
        is_remote = not urls or any(urlsplit(url).hostname not in hosts for url in urls)

        def make() -> httpx.Client:
            # The settings allow plain http to loopback only. It must bypass proxies from the
            # environment, which would see the bearer token, and has no TLS to verify.
            mounts = {"http://": httpx.HTTPTransport(verify=False, trust_env=False)}
            for host in hosts if proxy is None else ():
                name = f"[{host}]" if ":" in host else host
                mounts[f"https://{name}"] = httpx.HTTPTransport(verify=verify, trust_env=False)
            context = verify if proxy and proxy.startswith("https:") else None
            return httpx.Client(
                verify=verify,
                proxy=None if proxy is None else httpx.Proxy(proxy, ssl_context=context),
                mounts=mounts,
                trust_env=is_remote,
                timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT)),
                **_client_defaults(),
            )

        try:
            make().close()  # reports mistakes now, not on the first request
        except (ValueError, httpx.InvalidURL, ImportError) as error:
            # The error's text could contain the proxy's password.
            is_socks = isinstance(error, ImportError)  # of a package that is not needed otherwise
            what = "a SOCKS proxy cannot be used" if is_socks else "invalid proxy address"
            raise UsageError(
                f"{what} ({proxy_source})" if proxy_source else what,
                hint="write http://HOST:PORT there, and names and addresses without brackets in "
                "NO_PROXY",
            ) from None

        def proxy_of(url: str) -> str:
            scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
            if not proxy_name or scheme == "http":
                return ""
            is_direct = proxy is None and (host in hosts or bypasses(host))
            return "" if is_direct else f"{proxy_name} ({proxy_source})"

        return cls(make, timeout, proxy_of)

    @classmethod
    def in_process(cls, app: Callable[..., Any]) -> Self:
        """A client of the WSGI application `app`, without a network."""
        transport = httpx.WSGITransport(app, raise_app_exceptions=False)
        return cls(lambda: httpx.Client(transport=transport, trust_env=False, **_client_defaults()))

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request. Raises NotProcessed, or MaybeProcessed without a whole response."""
        if not hasattr(self._local, "own"):
            self._local.own = self._make_client(), ResponseDeadline()
            self._in_threads.append(self._local.own)
        (client, deadline), url = self._local.own, request.url
        started, outcome = time.monotonic(), "no response"
        try:
            response = self._exchange(request, client, deadline)
            if wrong_scheme := failures.requires_tls(url, response.status, response.body):
                raise wrong_scheme
            if deadline.stop():  # a body that ends with its connection would pass for complete
                raise failures.timed_out(url, self._proxy_of(url))
            outcome = str(response.status)
            return response
        except _NOT_SENT as error:
            raise failures.unreachable(url, error, self._proxy_of(url)) from None
        except httpx.TimeoutException:
            raise failures.timed_out(url, self._proxy_of(url)) from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            is_late, proxy = deadline.stop(), self._proxy_of(url)
            raise (
                failures.timed_out(url, proxy) if is_late else failures.cut_off(url, error, proxy)
            ) from None
        except DkimctlError as error:
            raise error.with_traceback(None) from None  # its frames hold the headers
        finally:
            deadline.stop()
            elapsed, sent = (time.monotonic() - started) * 1000, len(request.body or b"")
            shown = f"{request.method} {failures.origin_of(url) if request.has_secret_url else url}"
            _log.info("%s: %s, %.0f ms, %d bytes sent", shown, outcome, elapsed, sent)

    def close(self) -> None:
        if self._watcher is not None:
            self._closed.set()
            self._watcher.join()
        for client, _ in self._in_threads:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(
        self, request: HttpRequest, client: httpx.Client, deadline: ResponseDeadline
    ) -> HttpResponse:
        headers = {"Connection": "close"} if request.is_last else {}
        if request.authorization is not None:
            headers["Authorization"] = request.authorization.reveal()
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        with client.stream(
            request.method,
            request.url,
            headers=headers,
            content=request.body,
            extensions={"trace": functools.partial(self._trace, request.url, deadline)},
        ) as response:
            host, most = urlsplit(request.url).netloc, request.max_body
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise MaybeProcessed(
                    f"the response from {host} is compressed, which the request ruled out",
                    hint="check the profile's URLs and any proxy in between",
                )
            body = bytearray()  # a list of single bytes would take 60 times the memory
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > most:
                    limit = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
                    message = f"the response from {host} is larger than {limit}"
                    raise MaybeProcessed(message, hint="check the profile's URLs")
            retry, age, date = map(response.headers.get, ("Retry-After", "Age", "Date"))
            sent_at = _timestamp(date or "")
            # Caches in front of services keep errors for a moment.
            if not re.fullmatch("[0-9]{1,2}", (age or "0").strip()):
                sent_at = None  # from a cache: it is the time at which that got the answer
            wait = parse_retry_after(retry or "", time.time() if sent_at is None else sent_at)
            return HttpResponse(response.status_code, bytes(body), wait, sent_at)

    def _trace(
        self, url: str, deadline: ResponseDeadline, event: str, info: dict[str, Any]
    ) -> None:
        """Called by httpx at each step of a request: it limits each read, but not their sum."""
        if event.endswith((".start_tls.started", ".receive_response_headers.started")):
            deadline.start(time.monotonic() + self._timeout)
        if not event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            return
        stream = info["return_value"]
        connection = stream.get_extra_info("socket")
        address = "127.0.0.1"
        with suppress(OSError):  # the connection may have ended
            address = str(connection.getpeername()[0])
        if url.startswith("http:") and not ipaddress.ip_address(address).is_loopback:
            stream.close()  # `localhost` can resolve to anything
            raise failures.not_loopback(url, address)
        # The end of a connection is an error unless it was announced (RFC 8446 section 6.1).
        if isinstance(connection, ssl.SSLSocket):
            connection.suppress_ragged_eofs = False  # type: ignore[attr-defined]
        deadline.add_connection(connection)

    def _watch(self) -> None:
        """Enforce deadlines, at most a tenth of the timeout late."""
        while not self._closed.wait(min(self._timeout / 10, 1.0)):
            now = time.monotonic()
            for _, deadline in tuple(self._in_threads):
                deadline.enforce(now)


def parse_retry_after(value: str, now: float) -> float | None:
    """How many seconds a Retry-After header (RFC 9110 section 10.2.3) asks to wait, if any.

    `now` is by the service's clock if it tells the time, because ours may differ.
    """
    text = value.strip()
    if re.fullmatch("[0-9]+", text):
        return min(float(text), _MAX_RETRY_AFTER)
    retry_at = _timestamp(text)
    return None if retry_at is None else min(max(0.0, retry_at - now), _MAX_RETRY_AFTER)


def _timestamp(text: str) -> float | None:
    """An HTTP date (RFC 9110 section 5.6.7) in seconds since the epoch."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # The obsolete forms have no zone and mean UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _client_defaults() -> dict[str, Any]:
    """The options of every client: no cookies, no redirects."""
    policy = DefaultCookiePolicy(allowed_domains=[])
    # Redirects are not followed, so httpx must not fail on a malformed Location.
    hooks = {"response": [lambda response: response.headers.pop("Location", None)]}
    return {"headers": _HEADERS, "cookies": CookieJar(policy), "event_hooks": hooks}


class ResponseDeadline:
    """The time by which one thread's current response must be complete.

    A read timeout limits each read, not their sum; this shuts the thread's connections down.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._due = math.inf
        self._expired = False

    def add_connection(self, connection: socket.socket) -> None:
        """Shut down `connection` as well when the deadline expires."""
        with self._lock:
            # -1: it is closed, or TLS took it over.
            self._sockets = [sock for sock in self._sockets if sock.fileno() != -1] + [connection]

    def start(self, due: float) -> None:
        """Expect a complete response by `due` (monotonic seconds)."""
        with self._lock:
            self._due = due

    def stop(self) -> bool:
        """Expect nothing any more. True, once, if the deadline has expired."""
        with self._lock:
            expired, self._expired, self._due = self._expired, False, math.inf
        return expired

    def enforce(self, now: float) -> None:
        """Shut down every connection if the response was due by `now`."""
        with self._lock:
            if now < self._due:
                return
            self._expired, self._due = True, math.inf
            for sock in self._sockets:
                # Not SSLSocket.shutdown, which drops TLS: a pending read would go on in plain text.
                with suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """Trusts the CAs of `ca_bundle`, else of SSL_CERT_FILE or SSL_CERT_DIR, else httpx's."""
    try:
        if ca_bundle is not None:
            context = ssl.create_default_context(cafile=ca_bundle)
        else:
            context = httpx.create_ssl_context()
        # SSLKEYLOGFILE would write the session keys, and with them every secret, to a file.
        context.keylog_filename = None  # type: ignore[assignment]
        # On by default in Python 3.11.2: a response that was cut off would pass for complete.
        # LibreSSL does not have it.
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        return context
    except (OSError, ValueError) as error:
        source = ca_bundle or "named by SSL_CERT_FILE, SSL_CERT_DIR or SSLKEYLOGFILE"
        reason = "it has no certificate in PEM format"
        if not isinstance(error, ssl.SSLError):
            reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot use the certificates {source}: {reason}",
            hint="name a PEM file of CA certificates in --ca-bundle",
        ) from error
