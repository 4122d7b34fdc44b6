"""POST /oauth2/token: interface 2.1, 2.2, 3.1, 3.2, 4.1, 5.1, 7.1."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from falcon.testing import Result, TestClient
from sqlalchemy import func, select

from dkimctl.service.clients import (
    ClientCredentials,
    create_client,
    delete_client,
    disable_client,
    enable_client,
)
from dkimctl.service.database import Store
from dkimctl.service.schema import tokens
from fakes import Clock

RequestToken = Callable[..., Result]


def _assert_error(result: Result, error: str) -> None:
    assert result.status_code == 400
    assert result.json == {"error": error}
    assert result.headers["Content-Type"] == "application/json;charset=UTF-8"
    assert result.headers["Cache-Control"] == "no-store"


@pytest.mark.interface("2.1", "access_token", "other-fields")
@pytest.mark.interface("4.1", "path", "authorization")
@pytest.mark.interface("7.1", "200")
def test_valid_credentials_get_a_bearer_token_for_an_hour(
    request_token: RequestToken, credentials: ClientCredentials
) -> None:
    result = request_token(credentials)
    assert result.status_code == 200
    assert result.headers["Content-Type"] == "application/json"
    assert result.headers["Cache-Control"] == "no-store"
    token = result.json.pop("access_token")
    assert isinstance(token, str)
    assert 800 <= len(token) <= 1200
    assert result.json.items() >= {"token_type": "Bearer", "expires_in": 3600}.items()


def test_tokens_are_not_stored_in_plain_text(sqlite_store: Store, token: str) -> None:
    files = sqlite_store.path.parent.iterdir()
    assert not any(token.encode() in file.read_bytes() for file in files)


@pytest.mark.interface("4.1", "credentials")
def test_a_secret_may_have_colons(store: Store, request_token: RequestToken) -> None:
    assert request_token(create_client(store, "name", "a:b::c")).status_code == 200


@pytest.mark.parametrize("scheme", ["basic", "BASIC"])
def test_the_case_of_the_scheme_does_not_matter(
    request_token: RequestToken, credentials: ClientCredentials, scheme: str
) -> None:
    pair = f"{credentials.client_id}:{credentials.secret}".encode()
    header = f"{scheme} {base64.b64encode(pair).decode()}"
    assert request_token(None, authorization=header).status_code == 200


@pytest.mark.interface("2.2", "error", "invalid_client")
@pytest.mark.interface("4.1", "bad-request")
@pytest.mark.interface("7.1", "invalid_client")
def test_a_wrong_secret_is_an_invalid_client(
    request_token: RequestToken, credentials: ClientCredentials
) -> None:
    wrong = ClientCredentials(credentials.client_id, "wrong")
    _assert_error(request_token(wrong), "invalid_client")


@pytest.mark.interface("5.1", "credentials")
@pytest.mark.interface("7.1", "invalid_client")
@pytest.mark.interface("7.4", "other-fields")
def test_an_unknown_client_is_an_invalid_client(
    request_token: RequestToken, credentials: ClientCredentials
) -> None:
    unknown = ClientCredentials("unknown", credentials.secret)
    _assert_error(request_token(unknown), "invalid_client")


@pytest.mark.interface("3.2", "deleted")
def test_a_deleted_client_is_an_invalid_client(
    request_token: RequestToken, credentials: ClientCredentials, store: Store
) -> None:
    delete_client(store, credentials.client_id)
    _assert_error(request_token(credentials), "invalid_client")


@pytest.mark.interface("4.1", "authorization", "credentials")
@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Basic bmFtZQ==",  # "name", no colon
        "Basic bmFtZTpzZWNyZXQ",  # padding missing
        "Basic {}====",  # padding that is not needed
        "Basic \xa0{}",  # a blank that is not of ASCII
        "Basic \x85{}",
        "Basic\xa0{}",
        "Basic /////w==",  # not UTF-8
        "Basic \xe9",
        "Bearer bmFtZTpzZWNyZXQ=",
        "bmFtZTpzZWNyZXQ=",
    ],
)
def test_malformed_credentials_are_an_invalid_client(
    request_token: RequestToken, store: Store, basic: Callable[[str, str], str], header: str
) -> None:
    right = basic("name", "secret12").removeprefix("Basic ")  # of 13 octets, so it ends in "="
    create_client(store, "name", "secret12")
    _assert_error(request_token(None, authorization=header.format(right)), "invalid_client")
    assert request_token(None, authorization=f"Basic  {right} ").status_code == 200


@pytest.mark.interface("7.1", "invalid_client")
def test_a_missing_authorization_is_an_invalid_client(request_token: RequestToken) -> None:
    _assert_error(request_token(None), "invalid_client")


@pytest.mark.interface("3.2", "disabled")
def test_a_disabled_client_still_gets_tokens(
    request_token: RequestToken, credentials: ClientCredentials, store: Store
) -> None:
    disable_client(store, credentials.client_id)
    assert request_token(credentials).status_code == 200


@pytest.mark.interface("3.2", "enable")
def test_after_enabling_a_client_its_tokens_work_again(
    store: Store,
    credentials: ClientCredentials,
    token: str,
    register: Callable[..., Result],
) -> None:
    disable_client(store, credentials.client_id)
    assert register({"sign_domain": "example.com"}).status_code == 403
    enable_client(store, credentials.client_id)
    assert register({"sign_domain": "example.com"}).status_code == 200


@pytest.mark.interface("2.2", "invalid_client")
@pytest.mark.interface("4.1", "grant_type")
@pytest.mark.interface("7.1", "400")
@pytest.mark.parametrize("grant_type", ["password", "Client_Credentials", "client_credentials%20"])
def test_another_grant_type_is_unsupported(
    request_token: RequestToken, credentials: ClientCredentials, grant_type: str
) -> None:
    result = request_token(credentials, body=f"grant_type={grant_type}")
    _assert_error(result, "unsupported_grant_type")


@pytest.mark.interface("4.1", "content-type")
@pytest.mark.interface("7.1", "400")
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("grant_type=client_credentials&grant_type=client_credentials", None),
        ('{"grant_type": "client_credentials"}', "application/json"),
        ('{"grant_type": "client_credentials"}', None),
        ("grant_type=client_credentials", "text/plain"),
        ("grant_type=%FF", None),
        (b"grant_type=\xff", None),
        ("a=1&" * 101 + "grant_type=client_credentials", None),
    ],
)
def test_a_malformed_form_is_an_invalid_request(
    request_token: RequestToken,
    credentials: ClientCredentials,
    body: str | bytes,
    content_type: str | None,
) -> None:
    changes = {"content_type": content_type} if content_type else {}
    _assert_error(request_token(credentials, body=body, **changes), "invalid_request")


@pytest.mark.interface("4.1", "content-type")
def test_content_type_parameters_and_case_do_not_matter(
    request_token: RequestToken, credentials: ClientCredentials
) -> None:
    content_type = "Application/X-WWW-Form-URLEncoded; charset=UTF-8"
    assert request_token(credentials, content_type=content_type).status_code == 200


@pytest.mark.interface("4.1", "grant_type")
def test_other_form_fields_are_ignored(
    request_token: RequestToken, credentials: ClientCredentials
) -> None:
    body = "scope=dkim&grant_type=client_credentials"
    assert request_token(credentials, body=body).status_code == 200


@pytest.mark.interface("4.1", "other-bodies")
@pytest.mark.interface("7.1", "405-parameter")
@pytest.mark.parametrize(
    "body", ["", "scope=dkim", "grant_type=", "grant_type", "grant_type&scope=dkim"]
)
def test_a_missing_parameter_is_405(
    request_token: RequestToken, credentials: ClientCredentials, body: str
) -> None:
    result = request_token(credentials, body=body)
    assert result.status_code == 405
    assert "grant_type" in result.json["message"]


@pytest.mark.interface("7.1", "405-parameter")
def test_an_empty_body_without_content_type_is_405(client: TestClient) -> None:
    assert client.simulate_post("/oauth2/token").status_code == 405


@pytest.mark.interface("7.1", "405-method")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405(
    request_token: RequestToken, credentials: ClientCredentials, method: str
) -> None:
    result = request_token(credentials, method=method)
    assert result.status_code == 405
    assert result.headers["Allow"] == "POST"


def test_expired_tokens_are_deleted(
    request_token: RequestToken,
    credentials: ClientCredentials,
    clock: Clock,
    store: Store,
) -> None:
    for _ in range(3):
        request_token(credentials)
    clock.now += 3600
    request_token(credentials)
    with store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(tokens)).scalar() == 1
