"""What URLs the client may be sent to. None is quoted in an error: it could hold a password."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dkimctl.errors import UsageError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_NOT_IN_A_URL = r"[\0-\x20\x7f-\xa0\\\ud800-\udfff]"


def service_url(text: str) -> str:
    """An https URL, or an http one to this very machine, in its one spelling."""
    parts = _split(text, "https")
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise UsageError("plain http:// is for loopback addresses alone", hint="write https://...")
    return _spelled(parts)


def proxy_url(text: str) -> str:
    """The http or https URL of a proxy, in its one spelling."""
    return _spelled(_split(text, "http"))


def _spelled(parts: SplitResult) -> str:
    """Without trailing slash, and lower case where case means nothing: credentials go by it."""
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}".rstrip("/")


def _split(text: str, scheme: str) -> SplitResult:
    from urllib.parse import urlsplit

    if re.search(_NOT_IN_A_URL, text):
        raise UsageError("the URL holds a space, backslash or control character", hint="remove it")
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:
        raise UsageError("the URL has a wrong host or port", hint="correct it") from None
    if "[" in parts.netloc[1:]:  # urlsplit takes the host from the brackets alone
        raise UsageError("the URL has a wrong host or port", hint="correct it")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("no URL with scheme and host", hint=f"write {scheme}://HOST")
    if "@" in parts.netloc:
        raise UsageError(
            "the URL holds a user name or password", hint="remove what stands before the @"
        )
    if "?" in text or "#" in text:
        raise UsageError("the URL has a query or fragment", hint="end it with the path")
    return parts


def _is_loopback(host: str) -> bool:
    import ipaddress

    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address in ipaddress.ip_network("127.0.0.0/8") or address == ipaddress.ip_address("::1")
