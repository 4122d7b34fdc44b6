"""What is told of a request that came to no answer.

Never the text of an error that may quote what was sent or received.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import httpx

from dkimctl.errors import MaybeProcessed, NoService, NotProcessed


def unreachable(url: str, error: Exception) -> NotProcessed:
    message = f"cannot reach {host_of(url)}: {_why(error)}"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return NoService(
            message, hint="for a private certificate authority, name its file in --ca-bundle"
        )
    return NotProcessed(
        message,
        hint="check the network, the proxy and the URLs of the profile (dkimctl login --help)",
    )


def too_slow(url: str) -> MaybeProcessed:
    return MaybeProcessed(
        f"{host_of(url)} did not answer in time", hint="try again later, or raise --timeout"
    )


def broken_off(url: str, error: Exception) -> MaybeProcessed:
    # The text of the others may quote the answer, and that the request: its token and all.
    why = f": {error}" if isinstance(error, httpx.NetworkError) else ", or is not HTTP"
    return MaybeProcessed(
        f"the answer of {host_of(url)} broke off{why}",
        hint="try again later, and check the URLs of the profile if it persists",
    )


def not_loopback(url: str, address: str) -> NoService:
    return NoService(
        f"{host_of(url)} is at {address}, which is not this machine; plain http is for it alone",
        hint="write https://... in the URLs of the profile",
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


def host_of(url: str) -> str:
    return urlsplit(url).netloc
