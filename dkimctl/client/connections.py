"""Connections to the service: which CAs they trust, and how long a response may take."""

from __future__ import annotations

import ipaddress
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from dkimctl import __version__
from dkimctl.errors import ThreadLimitError, UsageError
from dkimctl.system.threads import StartThread, start_daemon

_HEADERS = {
    "User-Agent": f"dkimctl/{__version__}",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # a small compressed body can expand to a huge one
}
_CONNECT_TIMEOUT = 10.0  # seconds, for each address of a host
_CLOSED = -1  # the descriptor of a socket that is closed, or that TLS took over


def network_client_factory(
    timeout: float, ca_bundle: str | None, proxy: str | None
) -> Callable[[], httpx.Client]:
    """A function that makes HTTP clients; `timeout` is in seconds.

    Raises UsageError for a bad bundle or proxy.
    """
    verify = _tls_context(ca_bundle)

    def make() -> httpx.Client:
        # The settings allow plain http to loopback only. It must bypass proxies from the
        # environment, which would see the bearer token, and has no TLS to verify.
        direct = httpx.HTTPTransport(verify=False, trust_env=False)
        return httpx.Client(
            verify=verify,
            proxy=None if proxy is None else _proxy(proxy, verify),
            mounts={"http://": direct},
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT)),
            **client_defaults(),
        )

    try:
        make().close()  # reports mistakes now, not on the first request
    except (ValueError, httpx.InvalidURL, ImportError):
        # The error's text could contain the proxy's password.
        raise UsageError(
            "invalid proxy address",
            hint="write http://HOST:PORT in --proxy or HTTPS_PROXY, "
            "and names and addresses without brackets in NO_PROXY",
        ) from None
    return make


def in_process_client_factory(app: Callable[..., Any]) -> Callable[[], httpx.Client]:
    """A function that makes clients of the WSGI application `app`, without a network."""
    transport = httpx.WSGITransport(app, raise_app_exceptions=False)
    return lambda: httpx.Client(transport=transport, trust_env=False, **client_defaults())


def client_defaults() -> dict[str, Any]:
    """The options of every client: no cookies, no redirects."""
    policy = DefaultCookiePolicy(allowed_domains=[])
    hooks = {"response": [_drop_location]}
    return {"headers": _HEADERS, "cookies": CookieJar(policy), "event_hooks": hooks}


def require_close_notify(connection: socket.socket) -> None:
    """Make the end of a TLS connection an error unless it was announced (RFC 8446 section 6.1)."""
    if isinstance(connection, ssl.SSLSocket):
        connection.suppress_ragged_eofs = False  # type: ignore[attr-defined]


def remote_address(connection: socket.socket) -> str | None:
    """The peer's address, unless it is loopback or the connection has ended."""
    try:
        address = str(connection.getpeername()[0])
    except OSError:
        return None
    return None if ipaddress.ip_address(address).is_loopback else address


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
            self._sockets = [sock for sock in self._sockets if sock.fileno() != _CLOSED]
            self._sockets.append(connection)

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


class DeadlineThread:
    """A thread that enforces deadlines, at most a tenth of `timeout` (seconds) late.

    Raises ThreadLimitError.
    """

    def __init__(self, timeout: float, start_thread: StartThread = start_daemon) -> None:
        self._interval = min(timeout / 10, 1.0)
        self._deadlines: list[ResponseDeadline] = []
        self._closed = threading.Event()
        thread = start_thread(self._run, "deadlines")
        if thread is None:
            raise ThreadLimitError
        self._thread = thread

    def new_deadline(self) -> ResponseDeadline:
        deadline = ResponseDeadline()
        self._deadlines.append(deadline)
        return deadline

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._interval):
            now = time.monotonic()
            for deadline in tuple(self._deadlines):
                deadline.enforce(now)


def _drop_location(response: httpx.Response) -> None:
    """Redirects are not followed, so httpx must not fail on a malformed Location."""
    response.headers.pop("Location", None)


def _proxy(url: str, verify: ssl.SSLContext) -> httpx.Proxy:
    return httpx.Proxy(url, ssl_context=verify if url.startswith("https:") else None)


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
