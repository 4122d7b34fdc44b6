"""Which failures mean that nothing was processed, and what of them is told."""

from __future__ import annotations

import httpx
import pytest

from dkimctl.client import failures
from dkimctl.errors import (
    AuthenticationError,
    ClientRefused,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    Throttled,
)

URL = "https://service.example/domain/dkim"
NO_SERVICE = (300, 301, 302, 307, 308, 399, 404, 405, 406, 407, 410, 411, 415)


@pytest.mark.parametrize("status", [100, 204, 299, *NO_SERVICE, 402, 408, 409, 418, 499, 500, 503])
def test_only_where_there_is_no_service_a_registration_was_certainly_not_made(status):
    """A gateway may answer 408 for a request that is still being processed."""
    error = failures.registration_error(URL, status, "", 7.0)
    assert type(error) is (NoService if status in NO_SERVICE else MaybeProcessed)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_batch_that_is_refused_as_a_whole(status):
    error = failures.registration_error(URL, status, "too many", None)
    assert type(error) is RequestRefused
    assert (error.status, error.detail) == (str(status), "too many")


@pytest.mark.parametrize(("status", "kind"), [(429, Throttled), (503, MaybeProcessed)])
def test_how_long_the_service_asks_to_wait_is_kept(status, kind):
    error = failures.registration_error(URL, status, "busy", 7.0)
    assert (type(error), error.retry_after) == (kind, 7.0)
    assert failures.token_error(URL, status, "busy", 7.0).retry_after == 7.0


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, ClientRefused), (401, ClientRefused), (403, ClientRefused),
     (405, AuthenticationError), (302, NoService), (404, NoService), (429, NotProcessed),
     (500, NotProcessed)],
)  # fmt: skip
def test_what_ends_a_login(status, kind):
    assert type(failures.token_error(URL, status, "", None)) is kind


def test_the_text_of_a_response_that_is_not_http_is_not_told():
    """It may quote the token, which the response echoes."""
    quoting = failures.cut_off(URL, httpx.RemoteProtocolError("illegal status line: Bearer abc"))
    assert "abc" not in quoting.message
    assert "reset" in failures.cut_off(URL, httpx.ReadError("connection reset")).message


@pytest.mark.parametrize(
    ("url", "add"),
    [("https://service.example/domain/dkim", "check --base-url, to which /domain/dkim is added"),
     ("https://service.example/domain/dkim/domain/dkim", "write --base-url without /domain/dkim")],
)  # fmt: skip
def test_where_there_is_no_service_the_url_is_told(url, add):
    error = failures.registration_error(url, 404, "", None)
    assert error.message == f"{url} answered 404"
    assert add in error.hint
    issuer = url.replace("/domain/dkim", "/oauth2/token")
    error = failures.token_error(issuer, 404, "no", None)
    assert error.message == f"{issuer} answered 404: no"
    assert add.replace("--base-url", "--auth-url").replace("/domain/dkim", "/oauth2/token") in (
        error.hint
    )


def test_a_redirect_is_not_followed_and_the_hint_says_so():
    assert "redirects are not followed" in failures.token_error(URL, 301, "", None).hint


def test_a_tls_alert_in_answer_to_http_means_that_nothing_was_processed():
    line = bytearray(b"\x15\x03\x01\x00\x02\x02F")
    alert = httpx.RemoteProtocolError(f"illegal status line: {line}")
    error = failures.cut_off("http://127.0.0.1:8443/oauth2/token", alert)
    assert type(error) is NoService
    assert error.message == "the server at http://127.0.0.1:8443 uses TLS"
    assert error.hint == "write https:// in --auth-url"
    assert type(failures.cut_off(URL, alert)) is MaybeProcessed
    reset = failures.cut_off("http://127.0.0.1:8443/x", httpx.ReadError("reset"))
    assert type(reset) is MaybeProcessed
    assert "does the server use TLS?" in reset.message


def test_a_web_page_in_place_of_json_is_called_so():
    page = failures.unusable(URL, ValueError("invalid character"), b"\n<html>")
    assert page == f"the response from {URL} is not usable: it is a web page, not JSON"
    assert "invalid character" in failures.unusable(URL, ValueError("invalid character"), b"nope")
