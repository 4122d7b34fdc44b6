"""POST /oauth2/token: interface 2.1, 2.2, 3.1, 3.2, 4.1, 5.1, 7.1."""

from __future__ import annotations

import pytest

from dkimctl.service.clients import (
    ClientCredentials,
    create_client,
    delete_client,
    disable_client,
    enable_client,
)


def _assert_error(result, error):
    assert result.status_code == 400
    assert result.json == {"error": error}
    assert result.headers["Content-Type"] == "application/json;charset=UTF-8"
    assert result.headers["Cache-Control"] == "no-store"


@pytest.mark.interface("2.1", "access_token", "other-fields")
@pytest.mark.interface("4.1", "path", "authorization")
@pytest.mark.interface("7.1", "200")
def test_valid_credentials_get_a_bearer_token_for_an_hour(request_token, credentials):
    result = request_token(credentials)
    assert result.status_code == 200
    assert result.headers["Content-Type"] == "application/json"
    assert result.headers["Cache-Control"] == "no-store"
    token = result.json.pop("access_token")
    assert isinstance(token, str)
    assert 800 <= len(token) <= 1200
    assert result.json.items() >= {"token_type": "Bearer", "expires_in": 3600}.items()


def test_tokens_are_not_stored_in_plain_text(sqlite_store, token):
    files = sqlite_store.path.parent.iterdir()
    assert not any(token.encode() in file.read_bytes() for file in files)


@pytest.mark.interface("4.1", "credentials")
def test_a_secret_may_have_colons(store, request_token):
    assert request_token(create_client(store, "name", "a:b::c")).status_code == 200


@pytest.mark.interface("2.2", "error", "invalid_client")
@pytest.mark.interface("3.2", "deleted")
@pytest.mark.interface("4.1", "bad-request")
@pytest.mark.interface("5.1", "credentials")
@pytest.mark.interface("7.1", "invalid_client")
@pytest.mark.interface("7.4", "other-fields")
def test_wrong_and_missing_credentials_are_an_invalid_client(request_token, credentials, store):
    wrong = ClientCredentials(credentials.client_id, "wrong")
    for sent in (wrong, ClientCredentials("unknown", credentials.secret), None):
        _assert_error(request_token(sent), "invalid_client")
    delete_client(store, credentials.client_id)
    _assert_error(request_token(credentials), "invalid_client")


@pytest.mark.interface("4.1", "authorization", "credentials")
@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic !!!!",
        "Basic bmFtZQ==",  # "name", no colon
        "Basic bmFtZTpzZWNyZXQ",  # padding missing
        "Basic {}====",  # padding that is not needed
        "Basic \xa0{}",  # a blank that is not of ASCII
        "Basic /////w==",  # not UTF-8
        "Bearer bmFtZTpzZWNyZXQ=",
    ],
)
def test_malformed_credentials_are_an_invalid_client(request_token, store, basic, header):
    right = basic("name", "secret12").removeprefix("Basic ")  # of 13 octets, so it ends in "="
    create_client(store, "name", "secret12")
    _assert_error(request_token(None, authorization=header.format(right)), "invalid_client")
    assert request_token(None, authorization=f"Basic  {right} ").status_code == 200


@pytest.mark.interface("3.2", "disabled")
def test_a_disabled_client_still_gets_tokens(request_token, credentials, store):
    disable_client(store, credentials.client_id)
    assert request_token(credentials).status_code == 200


@pytest.mark.interface("3.2", "enable")
def test_after_enabling_a_client_its_tokens_work_again(store, credentials, token, register):
    disable_client(store, credentials.client_id)
    assert register({"sign_domain": "example.com"}).status_code == 403
    enable_client(store, credentials.client_id)
    assert register({"sign_domain": "example.com"}).status_code == 200


@pytest.mark.interface("2.2", "invalid_client")
@pytest.mark.interface("4.1", "grant_type")
@pytest.mark.interface("7.1", "400")
@pytest.mark.parametrize("grant_type", ["password", "Client_Credentials", "client_credentials%20"])
def test_another_grant_type_is_unsupported(request_token, credentials, grant_type):
    result = request_token(credentials, body=f"grant_type={grant_type}")
    _assert_error(result, "unsupported_grant_type")


@pytest.mark.interface("4.1", "content-type")
@pytest.mark.interface("7.1", "400")
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("grant_type=client_credentials&grant_type=client_credentials", None),
        ('{"grant_type": "client_credentials"}', None),
        ("grant_type=client_credentials", "text/plain"),
        (b"grant_type=\xff", None),
        ("a=1&" * 101 + "grant_type=client_credentials", None),
    ],
)
def test_a_malformed_form_is_an_invalid_request(request_token, credentials, body, content_type):
    changes = {"content_type": content_type} if content_type else {}
    _assert_error(request_token(credentials, body=body, **changes), "invalid_request")


@pytest.mark.interface("4.1", "content-type", "grant_type")
def test_content_type_parameters_and_case_do_not_matter(request_token, credentials):
    content_type = "Application/X-WWW-Form-URLEncoded; charset=UTF-8"
    body = "scope=dkim&grant_type=client_credentials"  # other fields are ignored
    assert request_token(credentials, content_type=content_type, body=body).status_code == 200


@pytest.mark.interface("4.1", "other-bodies")
@pytest.mark.interface("7.1", "405-parameter")
@pytest.mark.parametrize("body", ["", "scope=dkim", "grant_type="])
def test_a_missing_parameter_is_405(request_token, credentials, body):
    result = request_token(credentials, body=body)
    assert result.status_code == 405
    assert "grant_type" in result.json["message"]


@pytest.mark.interface("7.1", "405-method")
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
def test_another_method_is_405(request_token, credentials, method):
    result = request_token(credentials, method=method)
    assert result.status_code == 405
    assert result.headers["Allow"] == "POST"
