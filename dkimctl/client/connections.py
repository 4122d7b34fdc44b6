"""How connections to a service are made: whom they trust, and what they never do."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from dkimctl import __version__
from dkimctl.errors import UsageError

_HEADERS = {
    "User-Agent": f"dkimctl/{__version__}",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is packed can be far larger than it looks
}
_CONNECT_LIMIT = 10.0  # seconds, for each address of a host


def over_network(
    timeout: float, ca_bundle: str | None, proxy: str | None
) -> Callable[[], httpx.Client]:
    """What makes clients; `timeout` is in seconds. Raises UsageError for a bad bundle or proxy."""
    verify = _trust(ca_bundle)

    def make() -> httpx.Client:
        # Plain http is for loopback alone (the settings see to it), where a proxy from the
        # environment would be handed the bearer token. It has no TLS to verify.
        direct = httpx.HTTPTransport(verify=False, trust_env=False)
        return httpx.Client(
            verify=verify,
            proxy=None if proxy is None else _proxy(proxy, verify),
            mounts={"http://": direct},
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_LIMIT)),
            **client_defaults(),
        )

    try:
        make().close()  # so that mistakes are found now
    except (ValueError, httpx.InvalidURL, ImportError):
        # The text could hold the proxy's password.
        raise UsageError(
            "the proxy address is not usable",
            hint="write http://HOST:PORT in --proxy or in HTTPS_PROXY, "
            "and in NO_PROXY names and addresses without brackets",
        ) from None
    return make


def in_process(app: Callable[..., Any]) -> Callable[[], httpx.Client]:
    """What makes clients that the WSGI application `app` answers, in place of the network."""
    transport = httpx.WSGITransport(app, raise_app_exceptions=False)
    return lambda: httpx.Client(transport=transport, trust_env=False, **client_defaults())


def require_close_notify(connection: socket.socket) -> None:
    """Take no end of TLS for the end of an answer that was not announced (RFC 8446 section 6.1)."""
    if isinstance(connection, ssl.SSLSocket):
        connection.suppress_ragged_eofs = False  # type: ignore[attr-defined]


def address_elsewhere(connection: socket.socket) -> str | None:
    """Where a connection leads, unless it is this machine."""
    try:
        address = str(connection.getpeername()[0])
    except OSError:  # it has ended already
        return None
    return None if ipaddress.ip_address(address).is_loopback else address


def client_defaults() -> dict[str, Any]:
    """What every client does: it keeps no cookies, and looks at no redirect."""
    policy = DefaultCookiePolicy(allowed_domains=[])
    hooks = {"response": [_forget_location]}
    return {"headers": _HEADERS, "cookies": CookieJar(policy), "event_hooks": hooks}


def _forget_location(response: httpx.Response) -> None:
    """No redirect is followed, and one to nonsense is an answer as well, not an error."""
    response.headers.pop("Location", None)


def _proxy(url: str, verify: ssl.SSLContext) -> httpx.Proxy:
    return httpx.Proxy(url, ssl_context=verify if url.startswith("https:") else None)


def _trust(ca_bundle: str | None) -> ssl.SSLContext:
    """The certificates to trust: `ca_bundle`, else SSL_CERT_FILE, else the usual ones."""
    try:
        if ca_bundle is not None:
            context = ssl.create_default_context(cafile=ca_bundle)
        else:
            context = httpx.create_ssl_context()
        # SSLKEYLOGFILE would have the keys to every secret that is sent in a file.
        context.keylog_filename = None  # type: ignore[assignment]
        return context
    except (OSError, ValueError) as error:
        source = ca_bundle or "that SSL_CERT_FILE, SSL_CERT_DIR or SSLKEYLOGFILE names"
        raise UsageError(
            f"cannot use the certificates {source}: {error}",
            hint="give a file of PEM certificates in --ca-bundle",
        ) from error
