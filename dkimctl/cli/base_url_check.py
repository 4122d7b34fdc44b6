"""Whether the base URL of a login is that of the service: one request that has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkimctl.cli.session import Session
from dkimctl.errors import ServiceError, TokenRejected

if TYPE_CHECKING:
    from dkimctl.client.http import HttpResponse
    from dkimctl.models.secret import Token

# A GET changes nothing (RFC 9110 section 9.2.1). Of this path only POST is specified (interface
# 4.2), so any answer will do that does not say that there is nothing.
TEST_PATH = "/domain/dkim"
_ABSENT = (404, 410)
_HTML = (b"<!doctype", b"<html", b"<head", b"<body")


def require_base_url(session: Session, token: Token) -> None:
    """Raise ServiceError if the base URL does not answer; warn if it may be another's.

    A refused token is no error: that of a disabled client is (interface 3.2).
    """
    try:
        response = session.client.request(token.access_token, "GET", TEST_PATH)
    except TokenRejected as error:
        session.reporter.warn(f"base URL: {error.message}", hint=error.hint, code=error.code)
    except ServiceError as error:
        raise naming_url("base URL", error) from None
    else:
        _warn_if_strange(session, response)


def naming_url(name: str, error: ServiceError) -> ServiceError:
    """The error with the name of the URL whose host failed."""
    message = f"{name}: {error.message}; nothing was stored"
    return type(error)(message, hint=error.hint, retry_after=error.retry_after)


def strange_answer(response: HttpResponse) -> str:
    """What the service does not answer to a GET of TEST_PATH, or "" if it may be the service."""
    status = response.status
    if _is_page(response):
        return f"{status} with a web page"
    return str(status) if 300 <= status < 400 or status in _ABSENT else ""


def _warn_if_strange(session: Session, response: HttpResponse) -> None:
    status, url = response.status, session.account.base_url
    if status >= 500:
        session.reporter.warn(
            f"base URL: {url} answered {status} to a test request",
            hint="try a command later, and check --base-url if it persists",
        )
    elif strange := strange_answer(response):
        session.reporter.warn(
            f"base URL: {url} answered {strange} to a test request, as if it were not the service",
            hint="check the URL; if it is wrong, run `dkimctl login --base-url URL` again",
        )


def _is_page(response: HttpResponse) -> bool:
    """405 is what the service says to this method, whatever its body."""
    return response.status != 405 and response.body.lstrip().lower().startswith(_HTML)
