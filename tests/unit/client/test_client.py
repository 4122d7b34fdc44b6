"""The client over real connections: what it sends, and how it reads each response."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from dkimctl import errors
from dkimctl.client.client import Client
from dkimctl.client.http import HttpClient
from dkimctl.models import DnsRecord, DomainSpec, Registration, Secret

TOKEN = Secret("abc.def-ghi_jkl~mno+pqr/stu==")
DATE = {"Date": "Mon, 12 Jan 1970 14:46:40 GMT"}
SPECS = [
    DomainSpec("example.com", "sample0001", 1024, "2027-07-01T00:00+09:00", 0, True),
    DomainSpec("example.org", key_len=2048),
]


@pytest.fixture(scope="module")
def http():
    """One for all tests: loading the certificates takes most of a test's time."""
    with HttpClient.over_network(timeout=2) as http:
        yield http


@pytest.fixture
def client(scripted_server, http, monkeypatch):
    url = scripted_server.url
    clock = SimpleNamespace(time=lambda: 1_000_000.0)
    monkeypatch.setattr("dkimctl.client.client.time", clock)
    return Client(auth_url=url, base_url=url, http=http)


@pytest.fixture
def answering(scripted_server, make_answer, api_fixture):
    """Make the server give the same answer to every request; a body may be a fixture's name."""

    def answering(status, body=b"", **fields) -> None:
        if isinstance(body, str):
            body = api_fixture(body)
        answer = make_answer(status, body, **fields)
        scripted_server.answer = lambda request: answer

    return answering


class TestAskTime:
    """The clock is 1,000,000 s after the epoch: 1970-01-12, 13:46:40."""

    @pytest.mark.parametrize(
        ("status", "headers"), [(405, {}), (401, {"Age": "0"}), (403, {"Age": "60"}), (500, {})]
    )
    def test_any_answer_tells_the_difference(self, client, answering, status, headers):
        answering(status, headers=DATE | headers)
        ahead = client.ask_time() - datetime.now(UTC)
        assert abs(ahead.total_seconds() - 3600.5) < 10
        assert client.offset == 3600.5

    @pytest.mark.parametrize(
        "headers",
        [{"Date": ""}, {"Date": "yesterday"}, DATE | {"Age": "100"}, DATE | {"Age": "?"}],
    )
    def test_without_a_date_or_from_a_cache_it_is_not_known(self, client, answering, headers):
        answering(200, headers=headers)
        assert (client.ask_time(), client.offset) == (None, 0.0)

    def test_a_date_at_the_end_of_all_dates_is_beyond_ours(self, client, answering):
        answering(200, headers={"Date": "31 Dec 9999 23:59:59 GMT"})
        assert client.ask_time() is None

    def test_other_answers_tell_it_too(self, client, answering):
        answering(200, {"items": []}, headers=DATE)
        client.register(TOKEN, SPECS)
        assert client.offset == 3600.5

    def test_it_is_asked_for_by_a_request_without_effect(self, client, scripted_server):
        client.ask_time()
        [request] = scripted_server.requests
        assert (request.method, request.path, request.body) == ("GET", "/domain/dkim", b"")
        assert "authorization" not in request.headers

    def test_without_an_answer_it_fails(self, client, scripted_server):
        scripted_server.answer = lambda request: None
        with pytest.raises(errors.ServiceError):
            client.ask_time()


class TestIssueToken:
    """POST {auth_url}/oauth2/token (interface 4.1)."""

    @pytest.mark.interface("4.1", "path", "content-type", "authorization", "credentials")
    @pytest.mark.interface("4.1", "grant_type", "success")
    @pytest.mark.interface("5.1", "credentials")
    @pytest.mark.interface("2.1", "access_token", "other-fields")
    @pytest.mark.interface("7.1", "200")
    def test_request_and_response_are_those_of_section_4_1(
        self, client, scripted_server, answering, api_fixture
    ):
        answering(200, "token.json")
        token = client.issue_token("my-client", Secret("sécret:with colon"))
        (request,) = scripted_server.requests
        assert (request.method, request.path) == ("POST", "/oauth2/token")
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        assert request.body == b"grant_type=client_credentials"
        scheme, _, encoded = request.headers["authorization"].partition(" ")
        assert scheme == "Basic"
        assert base64.b64decode(encoded).decode() == "my-client:sécret:with colon"
        expected = json.loads(api_fixture("token.json"))
        assert token.access_token.reveal() == expected["access_token"]
        assert token.expires_at == 1_000_000 + expected["expires_in"]

    @pytest.mark.interface("2.1", "other-fields")
    @pytest.mark.interface("8", "token-lifetime")
    @pytest.mark.parametrize(
        ("lifetime", "seconds"),
        [("60", 60), *((word, 3600) for word in ("null", "0", "-1", '"600"', "true", "[]", "3601",
                                                 "1e308", "9" * 400))],
    )  # fmt: skip
    def test_without_a_valid_lifetime_a_token_lasts_one_hour(
        self, client, answering, lifetime, seconds
    ):
        answering(200, f'{{"access_token": "abc", "expires_in": {lifetime}}}'.encode())
        token = client.issue_token("id", Secret("s"))
        assert (token.expires_at, token.obtained_at) == (1_000_000 + seconds, 1_000_000)

    @pytest.mark.interface("2.2", "error", "invalid_client")
    @pytest.mark.interface("3.2", "deleted")
    @pytest.mark.interface("4.1", "bad-request", "other-bodies")
    @pytest.mark.interface(
        "7.1", "200", "400", "invalid_client", "405-method", "405-parameter", "500"
    )
    @pytest.mark.interface("7.4", "other-statuses", "other-fields")
    @pytest.mark.parametrize(
        ("status", "body", "kind", "words"),
        [
            (400, "invalid-client.json", errors.ClientRefused, "invalid_client"),
            (400, "invalid-client.json", errors.ClientRefused, "secret is wrong or.*deleted"),
            (400, {"error": "unsupported_grant_type", "x": 1}, errors.ClientRefused, "grant_type"),
            (405, "invalid-client.json", errors.AuthenticationError, "405.*invalid_client"),
            (405, b"", errors.AuthenticationError, "405.*--auth-url"),
            (500, b"<html>oops</html>", errors.NotProcessed, "500.*later"),
            (500, b"[]", errors.NotProcessed, "500.*later"),
            *((status, b"<html>", errors.ServiceError, str(status)) for status in (302, 404, 503)),
            (429, {"message": "sorry"}, errors.NotProcessed, "429.*sorry"),
            *((200, body, errors.NotProcessed, "token") for body in
              (b"", b"{}", b"[]", b"\xff", b'{"access_token": 5}', b'{"access_token": "a b"}',
               b'{"access_token": "a\\nX: y"}', b'{"access_token": ""}', b"[" * 100_000)),
            (200, {"access_token": "x" * 8193}, errors.NotProcessed, "not a bearer token"),
            (200, b" " * (1 << 20) + b"{}", errors.NotProcessed, "larger than 1 MiB"),
        ],
        ids=lambda value: str(value)[:20],
    )  # fmt: skip
    def test_other_answers_are_errors(self, client, answering, status, body, kind, words):
        answering(status, body, headers={"Location": "http://127.0.0.1:9/", "Content-Type": "x"})
        with pytest.raises(kind) as caught:
            client.issue_token("id", Secret("topsecret"))
        told = f"{caught.value.message} {caught.value.hint}"
        assert "topsecret" not in told
        assert re.search(words, told)

    @pytest.mark.parametrize("padding", [0, 980, 990, 5000])
    def test_a_long_error_is_shortened_without_leaving_part_of_a_secret(
        self, client, answering, padding
    ):
        secret = "a-secret-of-thirty-characters-"
        answering(400, {"error": "x" * padding + secret})
        with pytest.raises(errors.AuthenticationError) as caught:
            client.issue_token("my-client", Secret(secret))
        assert secret[:5] not in caught.value.message
        assert len(caught.value.message) < 1100

    def test_an_error_that_quotes_a_short_secret_is_not_shown(self, client, answering):
        encoded = base64.b64encode(b"me:topsecret").decode()
        for message in "wrong: topsecret", "wrong: TOPSECRET", encoded:
            answering(400, {"error": message})
            with pytest.raises(errors.AuthenticationError) as caught:
                client.issue_token("me", Secret("topsecret"))
            assert "wrong" not in caught.value.message
            assert message not in caught.value.message


class TestRegister:
    """POST {base_url}/domain/dkim (interface 4.2)."""

    @pytest.mark.interface("2.3", "domains", "several", "sign_domain", "selector-optional")
    @pytest.mark.interface("2.3", "selector", "key_len", "key_len-default", "start_date")
    @pytest.mark.interface("2.3", "start_date-default", "default", "default-others", "enable")
    @pytest.mark.interface("2.3", "enable-default")
    @pytest.mark.interface("2.4", "code", "message", "sign_domain", "selector", "key_len")
    @pytest.mark.interface("2.4", "start_date", "default", "enable", "setting_values", "fqdn")
    @pytest.mark.interface("2.4", "type", "value", "regist_date")
    @pytest.mark.interface("4.2", "path", "json", "content-type", "success", "created")
    @pytest.mark.interface("5.2", "header")
    @pytest.mark.interface("5.3", "registering")
    def test_request_and_items_are_those_of_the_interface(
        self, client, scripted_server, answering, api_fixture
    ):
        answering(200, "register-created.json")
        first, second = client.register(TOKEN, SPECS).items
        (request,) = scripted_server.requests
        assert (request.method, request.path) == ("POST", "/domain/dkim")
        assert request.headers["authorization"] == f"Bearer {TOKEN.reveal()}"
        assert request.headers["content-type"] == "application/json"
        assert json.loads(request.body) == json.loads(api_fixture("register-request.json"))
        values = [
            item["setting_values"]["value"]
            for item in json.loads(api_fixture("register-created.json"))["items"]
        ]
        assert first == Registration(
            "example.com",
            selector="sample0001",
            key_len=1024,
            start_date="2027-07-01T00:00+09:00",
            default=0,
            enable=True,
            record=DnsRecord("sample0001._domainkey.example.com", "TXT", values[0]),
            regist_date="2026-11-21T10:15:30+09:00",
            code="201",
            message="created",
        )
        assert second.selector == "k0a1b2c3"
        assert second.record == DnsRecord("k0a1b2c3._domainkey.example.org", "TXT", values[1])

    @pytest.mark.interface("2.4", "result")
    @pytest.mark.interface("4.2", "codes", "bad-request", "error")
    @pytest.mark.interface("7.3", "200")
    @pytest.mark.parametrize("status", [200, 400, 500])
    def test_each_item_has_its_own_code_and_only_ours_has_data(self, client, answering, status):
        answering(status, "register-mixed.json")
        items = client.register(TOKEN, SPECS).items
        assert [item.code for item in items] == ["409", "409", "400", "500"]
        assert [item.record is None for item in items] == [False, True, True, True]
        assert [item.key_len for item in items] == [1024, None, None, None]

    @pytest.mark.interface("2.4", "code", "setting_values", "selector", "result", "count", "total")
    @pytest.mark.interface("4.2", "counts")
    def test_fields_may_be_absent_or_null_and_a_malformed_item_affects_no_other(
        self, client, answering
    ):
        values = {"fqdn": "k1._domainkey.example.com.", "type": "TXT", "value": "x"}
        bare = {"result": {"code": 201}, "sign_domain": "Example.com.", "selector": None,
                "setting_values": None}  # fmt: skip
        named = {"result": {"code": "201"}, "sign_domain": "example.com", "setting_values": values}
        items = [bare, {**named, "key_len": "many"}, {"sign_domain": "x"}, 5, named]
        answering(200, {"items": items, "count": 9, "total": 1})
        reply = client.register(TOKEN, SPECS)
        first, second = reply.items
        assert (first.sign_domain, first.selector, first.code) == ("example.com", None, "201")
        assert first.record is None
        assert (second.selector, second.record.fqdn) == ("k1", "k1._domainkey.example.com")
        paths = ["$.items[1].key_len", "$.items[2]", "$.items[3]"]
        for fault, path in zip(reply.faults, paths, strict=True):
            assert f"`{path}`" in fault

    @pytest.mark.interface("4.2", "bad-request", "error", "success")
    @pytest.mark.interface("7.3", "400", "500")
    @pytest.mark.interface("7.4", "other-statuses", "other-fields")
    @pytest.mark.interface("8", "rate", "body-size")
    @pytest.mark.parametrize(
        ("status", "body", "kind", "words"),
        [
            (400, "register-refused.json", errors.RequestRefused, "400.*domains is empty"),
            (413, {"message": "too many domains"}, errors.RequestRefused, "413.*too many domains"),
            (500, "register-failed.json", errors.MaybeProcessed, "500: Internal.*later"),
            (500, {"items": [], "message": "oops", "x": [1]}, errors.MaybeProcessed, "500: oops"),
            *((status, {"Message": "Too Many"}, errors.NotProcessed, "Too Many")
              for status in (302, 404, 405, 415, 429)),
            *((status, b"", errors.MaybeProcessed, str(status))
              for status in (204, 408, 418, 499, 502, 503, 504)),
            *((200, body, errors.MaybeProcessed, "not usable")
              for body in (b"", b"{", b"[]", b"null", b'{"items": 5}', b'{"count": 1}', b"\xff\xfe",
                           b"[" * 60_000, b'{"items": [' + b"1," * 10_000 + b"1]}")),
            (200, b"x" * (17 << 20), errors.MaybeProcessed, "larger than 96 KiB"),
        ],
        ids=lambda value: str(value)[:20],
    )  # fmt: skip
    def test_other_answers_are_errors(self, client, answering, status, body, kind, words):
        answering(status, body, headers={"Location": "/elsewhere"})
        with pytest.raises(kind) as caught:
            client.register(TOKEN, SPECS)
        assert re.search(words, f"{caught.value.message} {caught.value.hint}")


class TestRequest:
    """Any bearer-protected request (interface 4.3, 5.2, 5.3)."""

    @pytest.mark.interface("4.3", "delete", "items", "other-endpoints")
    @pytest.mark.interface("5.2", "header", "authenticated")
    @pytest.mark.interface("5.3", "header")
    def test_a_delivery_is_cancelled_as_section_5_3_shows(
        self, client, scripted_server, answering, api_fixture
    ):
        answering(200, "send-cancelled.json")
        response = client.request(TOKEN, "DELETE", "/send/123")
        (request,) = scripted_server.requests
        assert (request.method, request.path, request.body) == ("DELETE", "/send/123", b"")
        assert request.headers["authorization"] == f"Bearer {TOKEN.reveal()}"
        assert (response.status, response.body) == (200, api_fixture("send-cancelled.json"))

    def test_secrets_of_earlier_requests_are_redacted(self, client, answering):
        answering(200, "token.json")
        secret = Secret("a-secret-of-some-length")
        old_token = Secret("an-older-token-of-some-length")
        client.issue_token("id", secret)
        body = f'{{"message": "{secret.reveal()} {old_token.reveal()} new-token-of-some-length"}}'
        answering(200, body.encode())
        client.request(old_token, "GET", "/x")
        response = client.request(Secret("new-token-of-some-length"), "GET", "/x")
        assert response.body == b'{"message": "*** *** ***"}'

    @pytest.mark.interface("5.2", "missing", "unauthorized")
    @pytest.mark.interface("5.3", "missing")
    @pytest.mark.interface("7.2", "401", "403")
    @pytest.mark.parametrize(("status", "name"), [(401, "unauthorized"), (403, "forbidden")])
    def test_a_rejected_token_is_raised_with_the_response_body(
        self, client, answering, api_fixture, status, name
    ):
        answering(status, f"{name}.json")
        message = json.loads(api_fixture(f"{name}.json"))["message"]
        for send in (
            lambda: client.register(TOKEN, SPECS),
            lambda: client.request(TOKEN, "GET", "/"),
        ):
            with pytest.raises(errors.TokenRejected, match=f"{status}.*{message}") as caught:
                send()
            assert caught.value.body == api_fixture(f"{name}.json")
            assert ("temporarily disabled" in caught.value.hint) == (status == 403)
            assert TOKEN.reveal() not in caught.value.hint + str(caught.value)

    @pytest.mark.interface("4.1", "path")
    @pytest.mark.interface("4.2", "path")
    def test_only_tokens_are_requested_from_the_auth_url_and_batches_share_a_connection(
        self, scripted_server, answering
    ):
        url = scripted_server.url
        with HttpClient.over_network(timeout=2) as http:
            client = Client(auth_url=f"{url}/auth", base_url=f"{url}/service", http=http)
            answering(200, "register-created.json")
            for _ in range(3):
                client.register(TOKEN, SPECS)
            assert (len(scripted_server.requests), scripted_server.connections) == (3, 1)
            client.request(TOKEN, "DELETE", "/send/123")
            answering(200, "token.json")
            client.issue_token("id", Secret("s"))
        paths = [request.path for request in scripted_server.requests]
        assert paths[2:] == ["/service/domain/dkim", "/service/send/123", "/auth/oauth2/token"]


def test_a_bad_proxy_or_ca_bundle_is_a_usage_error(tmp_path):
    with pytest.raises(errors.UsageError, match="proxy") as caught:
        HttpClient.over_network(timeout=1, proxy="nonsense://user:password@host:1")
    assert "password" not in str(caught.value)
    empty = tmp_path / "ca.pem"
    empty.write_text("")
    for bundle in (empty, tmp_path / "absent.pem", tmp_path):
        with pytest.raises(errors.UsageError, match="cannot use the certificates"):
            HttpClient.over_network(timeout=1, ca_bundle=str(bundle))
