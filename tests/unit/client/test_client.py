"""The client over real connections: what it sends, and how it reads each response."""

from __future__ import annotations

import base64
import json

import pytest

from dkimctl import errors
from dkimctl.client.client import Client
from dkimctl.client.http import HttpClient
from dkimctl.models import DnsRecord, DomainSpec, Registration, Secret

TOKEN = Secret("abc.def-ghi_jkl~mno+pqr/stu==")
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
def client(scripted_server, http):
    url = scripted_server.url
    return Client(auth_url=url, base_url=url, http=http, clock=lambda: 1_000_000.0)


@pytest.fixture
def answering(scripted_server, make_answer):
    """Make the server give the same answer to every request."""

    def answering(*arguments, **fields) -> None:
        answer = make_answer(*arguments, **fields)
        scripted_server.answer = lambda request: answer

    return answering


class TestIssueToken:
    """POST {auth_url}/oauth2/token (interface 4.1)."""

    @pytest.mark.interface("4.1", "path", "content-type", "authorization", "credentials")
    @pytest.mark.interface("4.1", "grant_type")
    @pytest.mark.interface("5.1", "credentials")
    def test_the_request_is_that_of_section_4_1(
        self, client, scripted_server, answering, api_fixture
    ):
        answering(200, api_fixture("token.json"))
        client.issue_token("my-client", Secret("sécret:with colon"))
        (request,) = scripted_server.requests
        assert (request.method, request.path) == ("POST", "/oauth2/token")
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        assert request.body == b"grant_type=client_credentials"
        scheme, _, encoded = request.headers["authorization"].partition(" ")
        assert scheme == "Basic"
        assert base64.b64decode(encoded).decode() == "my-client:sécret:with colon"

    @pytest.mark.interface("2.1", "access_token", "other-fields")
    @pytest.mark.interface("4.1", "success")
    @pytest.mark.interface("7.1", "200")
    def test_the_response_gives_token_and_expiry(self, client, answering, api_fixture):
        answering(200, api_fixture("token.json"))
        token = client.issue_token("id", Secret("s"))
        expected = json.loads(api_fixture("token.json"))
        assert token.access_token.reveal() == expected["access_token"]
        assert token.expires_at == 1_000_000 + expected["expires_in"]
        answering(200, {"access_token": "abc", "scope": ["x"], "expires_in": 60})
        assert client.issue_token("id", Secret("s")).expires_at == 1_000_060

    @pytest.mark.interface("2.1", "other-fields")
    @pytest.mark.interface("8", "token-lifetime")
    @pytest.mark.parametrize(
        "lifetime", ["null", "0", "-1", "-1e308", '"600"', "true", "[]", "3601", "1e308", "9" * 400]
    )
    def test_without_a_valid_lifetime_a_token_lasts_one_hour(self, client, answering, lifetime):
        answering(200, f'{{"access_token": "abc", "expires_in": {lifetime}}}'.encode())
        token = client.issue_token("id", Secret("s"))
        assert (token.expires_at, token.obtained_at) == (1_003_600, 1_000_000)

    def test_a_huge_response_is_not_read(self, client, answering):
        answering(200, b" " * (1 << 20) + b'{"access_token": "abc"}')
        with pytest.raises(errors.NotProcessed, match="larger than 1 MiB"):
            client.issue_token("id", Secret("s"))

    @pytest.mark.interface("2.2", "error", "invalid_client")
    @pytest.mark.interface("3.2", "deleted")
    @pytest.mark.interface("7.1", "invalid_client")
    @pytest.mark.parametrize("status", [400, 405])
    def test_a_refusal_says_what_may_be_wrong(self, client, answering, api_fixture, status):
        answering(status, api_fixture("invalid-client.json"))
        with pytest.raises(errors.AuthenticationError, match="invalid_client") as caught:
            client.issue_token("id", Secret("topsecret"))
        assert "topsecret" not in repr(caught.value) + caught.value.hint
        assert status != 400 or "deleted" in caught.value.hint
        assert status != 400 or "secret is wrong" in caught.value.hint

    @pytest.mark.interface("4.1", "bad-request")
    @pytest.mark.parametrize(
        "content_type", ["application/json;charset=UTF-8", "text/html", "nonsense"]
    )
    def test_a_refusal_is_read_regardless_of_its_content_type(
        self, client, answering, api_fixture, content_type
    ):
        answering(400, api_fixture("invalid-client.json"), headers={"Content-Type": content_type})
        with pytest.raises(errors.AuthenticationError, match="invalid_client"):
            client.issue_token("id", Secret("s"))

    @pytest.mark.interface("2.2", "invalid_client")
    @pytest.mark.interface("7.1", "400")
    @pytest.mark.interface("7.4", "other-fields")
    def test_an_undocumented_error_is_shown_as_it_is(self, client, answering):
        answering(400, {"error": "unsupported_grant_type", "error_description": "?"})
        with pytest.raises(errors.AuthenticationError, match="unsupported_grant_type"):
            client.issue_token("id", Secret("topsecret"))

    @pytest.mark.parametrize("padding", [0, 980, 990, 5000])
    def test_a_long_error_is_shortened_without_leaving_part_of_a_secret(
        self, client, answering, padding
    ):
        secret = "a-secret-of-thirty-characters-"
        answering(400, {"error": "x" * padding + secret})
        with pytest.raises(errors.AuthenticationError) as caught:
            client.issue_token("my-client", Secret(secret))
        assert secret[:5] not in caught.value.message
        answering(400, {"error": "x" * 5000})
        with pytest.raises(errors.AuthenticationError) as caught:
            client.issue_token("my-client", Secret(secret))
        assert caught.value.message.endswith("xxx...")
        assert len(caught.value.message) < 1100

    def test_a_token_that_no_header_can_hold_is_refused(self, client, answering):
        answering(200, {"access_token": "x" * 8193})
        with pytest.raises(errors.NotProcessed, match="not a bearer token"):
            client.issue_token("id", Secret("s"))

    @pytest.mark.interface("4.1", "other-bodies")
    @pytest.mark.interface("7.1", "405-method", "405-parameter", "500")
    @pytest.mark.parametrize("body", [b"", b"<html>oops</html>", b'{"message": "sorry"}', b"[]"])
    @pytest.mark.parametrize(
        ("status", "kind", "hint"),
        [(405, errors.AuthenticationError, "--auth-url"), (500, errors.ServiceError, "later")],
    )
    def test_405_and_500_may_have_any_body(self, client, answering, body, status, kind, hint):
        answering(status, body)
        with pytest.raises(kind, match=str(status)) as caught:
            client.issue_token("id", Secret("s"))
        assert hint in caught.value.hint

    @pytest.mark.interface("7.1", "200")
    @pytest.mark.interface("7.4", "other-statuses")
    @pytest.mark.parametrize("status", [302, 404, 429, 500, 503])
    def test_other_statuses_are_service_errors(self, client, answering, status):
        answering(status, b"<html>oops</html>", headers={"Location": "http://127.0.0.1:9/"})
        with pytest.raises(errors.ServiceError, match=str(status)):
            client.issue_token("id", Secret("s"))

    @pytest.mark.interface("2.1", "access_token")
    @pytest.mark.parametrize(
        "body",
        [b"", b"{}", b"[]", b"\xff", b'{"access_token": 5}', b'{"access_token": "a b"}',
         b'{"access_token": "a\\nX: y"}', b'{"access_token": ""}', b"[" * 100_000],
    )  # fmt: skip
    def test_a_response_without_a_token_is_a_service_error(self, client, answering, body):
        answering(200, body)
        with pytest.raises(errors.ServiceError, match="token"):
            client.issue_token("id", Secret("s"))


class TestRegister:
    """POST {base_url}/domain/dkim (interface 4.2)."""

    @pytest.mark.interface("2.3", "domains", "several", "sign_domain")
    @pytest.mark.interface("4.2", "path", "json", "content-type")
    @pytest.mark.interface("5.2", "header")
    @pytest.mark.interface("5.3", "registering")
    def test_the_request_is_that_of_sections_2_3_and_5_2(
        self, client, scripted_server, answering, api_fixture
    ):
        answering(200, api_fixture("register-created.json"))
        client.register(TOKEN, SPECS)
        (request,) = scripted_server.requests
        assert (request.method, request.path) == ("POST", "/domain/dkim")
        assert request.headers["authorization"] == f"Bearer {TOKEN.reveal()}"
        assert request.headers["content-type"] == "application/json"
        assert json.loads(request.body) == json.loads(api_fixture("register-request.json"))

    @pytest.mark.interface("2.3", "selector", "selector-optional", "key_len", "key_len-default")
    @pytest.mark.interface("2.3", "start_date", "start_date-default", "default", "default-others")
    @pytest.mark.interface("2.3", "enable", "enable-default")
    @pytest.mark.parametrize(
        "fields",
        [{}, {"selector": "s1"}, {"key_len": 2048}, {"start_date": "2027-07-01T00:00+09:00"},
         {"default": 0}, {"default": 7}, {"enable": True}, {"enable": False}],
        ids=str,
    )  # fmt: skip
    def test_only_the_fields_of_an_entry_are_sent(self, client, scripted_server, answering, fields):
        answering(200, {"items": []})
        client.register(TOKEN, [DomainSpec("example.com", **fields)])
        (request,) = scripted_server.requests
        body = json.loads(request.body)
        assert repr(body) == repr({"domains": [{"sign_domain": "example.com", **fields}]})

    @pytest.mark.interface("2.3", "selector-optional")
    @pytest.mark.interface("2.4", "code", "message", "sign_domain", "selector", "key_len")
    @pytest.mark.interface("2.4", "start_date", "default", "enable", "setting_values", "fqdn")
    @pytest.mark.interface("2.4", "type", "value", "regist_date")
    @pytest.mark.interface("4.2", "success", "created")
    def test_each_item_becomes_a_registration(self, client, answering, api_fixture):
        answering(200, api_fixture("register-created.json"))
        first, second = client.register(TOKEN, SPECS).items
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
    @pytest.mark.interface("4.2", "codes")
    @pytest.mark.interface("7.3", "200")
    def test_each_item_has_its_own_code_and_only_ours_has_data(
        self, client, answering, api_fixture
    ):
        answering(200, api_fixture("register-mixed.json"))
        items = client.register(TOKEN, SPECS).items
        assert [item.code for item in items] == ["409", "409", "400", "500"]
        assert [item.record is None for item in items] == [False, True, True, True]
        assert [item.key_len for item in items] == [1024, None, None, None]

    @pytest.mark.interface("2.4", "code", "setting_values", "selector")
    def test_fields_may_be_absent_or_null(self, client, answering):
        values = {"fqdn": "k1._domainkey.example.com.", "type": "TXT", "value": "x"}
        answering(200, {"items": [
            {"result": {"code": 201}, "sign_domain": "Example.com.", "selector": None,
             "setting_values": None},
            {"result": {"code": "201"}, "sign_domain": "example.com", "setting_values": values},
        ]})  # fmt: skip
        item, named = client.register(TOKEN, SPECS).items
        assert (item.sign_domain, item.selector, item.code) == ("example.com", None, "201")
        assert item.record is None
        assert (named.selector, named.record.fqdn) == ("k1", "k1._domainkey.example.com")

    @pytest.mark.interface("2.4", "result")
    def test_a_malformed_field_affects_one_item_and_is_named_by_its_path(self, client, answering):
        good = {"result": {"code": "201"}, "sign_domain": "example.com"}
        answering(
            200, {"items": [good, {**good, "key_len": "many"}, {"sign_domain": "x"}, 5, good]}
        )
        reply = client.register(TOKEN, SPECS)
        assert len(reply.items) == 2
        paths = ["$.items[1].key_len", "$.items[2]", "$.items[3]"]
        for fault, path in zip(reply.faults, paths, strict=True):
            assert f"`{path}`" in fault

    @pytest.mark.interface("2.4", "count", "total")
    @pytest.mark.interface("4.2", "counts")
    def test_count_and_total_are_not_needed_but_more_results_are_a_fault(self, client, answering):
        item = {"result": {"code": "201"}, "sign_domain": "example.com"}
        for counts in ({"count": 9, "total": 1}, {}):
            answering(200, {"items": [item], **counts})
            reply = client.register(TOKEN, SPECS)
            assert (len(reply.items), reply.faults) == (1, ())
        answering(200, {"items": [], "count": 0, "total": 3})
        assert "3 results" in client.register(TOKEN, SPECS).faults[0]

    @pytest.mark.interface("4.2", "bad-request", "error")
    @pytest.mark.parametrize("status", [400, 500])
    def test_items_are_read_from_400_and_500_too(self, client, answering, api_fixture, status):
        answering(status, api_fixture("register-mixed.json"))
        codes = [item.code for item in client.register(TOKEN, SPECS).items]
        assert codes == ["409", "409", "400", "500"]

    @pytest.mark.interface("5.2", "missing", "unauthorized")
    @pytest.mark.interface("7.2", "401", "403")
    @pytest.mark.parametrize(
        ("status", "fixture"), [(401, "unauthorized.json"), (403, "forbidden.json")]
    )
    def test_a_rejected_token_is_raised_with_the_response_body(
        self, client, answering, api_fixture, status, fixture
    ):
        answering(status, api_fixture(fixture))
        message = json.loads(api_fixture(fixture))["message"]
        with pytest.raises(errors.TokenRejected, match=f"{status}.*{message}") as caught:
            client.register(TOKEN, SPECS)
        assert caught.value.body == api_fixture(fixture)
        assert ("temporarily disabled" in caught.value.hint) == (status == 403)
        assert TOKEN.reveal() not in caught.value.hint + str(caught.value)

    @pytest.mark.interface("4.2", "bad-request")
    @pytest.mark.interface("7.3", "400")
    @pytest.mark.parametrize("status", [400, 413])
    def test_a_batch_can_be_refused_as_a_whole(self, client, answering, api_fixture, status):
        refused = api_fixture("register-refused.json")
        bodies = {"too many domains": {"message": "too many domains"}, "domains is empty.": refused}
        for detail, body in bodies.items():
            answering(status, body)
            with pytest.raises(errors.RequestRefused) as caught:
                client.register(TOKEN, SPECS)
            assert (caught.value.status, caught.value.detail) == (str(status), detail)

    @pytest.mark.interface("4.2", "error")
    @pytest.mark.interface("7.3", "500")
    @pytest.mark.interface("7.4", "other-fields")
    def test_a_500_says_to_try_again_later(self, client, answering, api_fixture):
        for body in (api_fixture("register-failed.json"),
                     {"items": [], "message": "Internal Server Error", "trace": [1]}):  # fmt: skip
            answering(500, body)
            with pytest.raises(errors.MaybeProcessed, match="500: Internal Server Error") as caught:
                client.register(TOKEN, SPECS)
            assert "try again later" in caught.value.hint

    @pytest.mark.interface("7.4", "other-statuses")
    @pytest.mark.interface("8", "rate")
    @pytest.mark.parametrize("status", [302, 404, 405, 415, 429])
    def test_a_request_turned_away_means_not_processed(self, client, answering, status):
        answering(status, {"Message": "Too Many"})
        with pytest.raises(errors.NotProcessed, match="Too Many"):
            client.register(TOKEN, SPECS)

    @pytest.mark.interface("7.4", "other-statuses")
    @pytest.mark.parametrize("status", [204, 408, 418, 499, 500, 502, 503, 504])
    def test_other_statuses_mean_maybe_processed(self, client, answering, status):
        answering(status, headers={"Location": "/elsewhere"})
        with pytest.raises(errors.MaybeProcessed, match=str(status)):
            client.register(TOKEN, SPECS)

    @pytest.mark.interface("4.2", "success")
    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"[]", b"null", b'{"items": 5}', b'{"count": 1}', b"\xff\xfe", b"[" * 60_000,
         b'{"items": [' + b"1," * 10_000 + b"1]}"],
    )  # fmt: skip
    def test_an_unusable_body_means_maybe_processed(self, client, answering, body):
        answering(200, body)
        with pytest.raises(errors.MaybeProcessed, match="not usable"):
            client.register(TOKEN, SPECS)

    def test_a_closed_connection_means_maybe_processed(self, client, scripted_server):
        scripted_server.answer = lambda request: None
        with pytest.raises(errors.MaybeProcessed, match="cut off"):
            client.register(TOKEN, SPECS)

    @pytest.mark.interface("8", "body-size")
    def test_an_endless_body_is_not_read_to_its_end(self, client, answering):
        answering(200, b"x" * (17 * 1024 * 1024))
        with pytest.raises(errors.MaybeProcessed, match="larger than 96 KiB"):
            client.register(TOKEN, SPECS)


class TestRequest:
    """Any bearer-protected request (interface 4.3, 5.2, 5.3)."""

    @pytest.mark.interface("4.3", "delete", "items")
    @pytest.mark.interface("5.2", "header")
    @pytest.mark.interface("5.3", "header")
    def test_a_delivery_is_cancelled_as_section_5_3_shows(
        self, client, scripted_server, answering, api_fixture
    ):
        answering(200, api_fixture("send-cancelled.json"))
        response = client.request(TOKEN, "DELETE", "/send/123")
        (request,) = scripted_server.requests
        assert (request.method, request.path, request.body) == ("DELETE", "/send/123", b"")
        assert request.headers["authorization"] == f"Bearer {TOKEN.reveal()}"
        assert (response.status, response.body) == (200, api_fixture("send-cancelled.json"))

    @pytest.mark.interface("4.3", "other-endpoints")
    def test_a_body_is_sent_with_its_content_type(self, client, scripted_server, answering):
        answering(201, b"done")
        response = client.request(TOKEN, "PUT", "/x", body=b"[1]", content_type="application/json")
        (request,) = scripted_server.requests
        assert (request.method, request.path, request.body) == ("PUT", "/x", b"[1]")
        assert request.headers["content-type"] == "application/json"
        assert (response.status, response.body) == (201, b"done")

    def test_secrets_of_earlier_requests_are_redacted(self, client, answering, api_fixture):
        answering(200, api_fixture("token.json"))
        secret = Secret("a-secret-of-some-length")
        old_token = Secret("an-older-token-of-some-length")
        client.issue_token("id", secret)
        body = f'{{"message": "{secret.reveal()} {old_token.reveal()} new-token-of-some-length"}}'
        answering(200, body.encode())
        client.request(old_token, "GET", "/x")
        response = client.request(Secret("new-token-of-some-length"), "GET", "/x")
        assert response.body == b'{"message": "*** *** ***"}'

    @pytest.mark.interface("5.2", "authenticated")
    @pytest.mark.parametrize("status", [200, 202, 302, 400, 404, 409, 429, 500, 503])
    def test_other_statuses_are_returned(self, client, answering, status):
        answering(status, {"message": "unchanged"})
        response = client.request(TOKEN, "DELETE", "/send/123")
        assert (response.status, json.loads(response.body)) == (status, {"message": "unchanged"})

    @pytest.mark.interface("5.3", "missing")
    @pytest.mark.parametrize(
        ("status", "fixture"), [(401, "unauthorized.json"), (403, "forbidden.json")]
    )
    def test_a_rejected_token_is_raised_with_the_response_body(
        self, client, answering, api_fixture, status, fixture
    ):
        answering(status, api_fixture(fixture))
        with pytest.raises(errors.TokenRejected, match=str(status)) as caught:
            client.request(TOKEN, "DELETE", "/send/123")
        assert caught.value.body == api_fixture(fixture)

    @pytest.mark.interface("4.1", "path")
    @pytest.mark.interface("4.2", "path")
    def test_only_tokens_are_requested_from_the_auth_url(
        self, scripted_server, http, answering, api_fixture
    ):
        url = scripted_server.url
        client = Client(auth_url=f"{url}/auth", base_url=f"{url}/service", http=http)
        answering(200, api_fixture("token.json"))
        client.issue_token("id", Secret("s"))
        answering(200, api_fixture("register-created.json"))
        client.register(TOKEN, SPECS)
        client.request(TOKEN, "DELETE", "/send/123")
        paths = [request.path for request in scripted_server.requests]
        assert paths == ["/auth/oauth2/token", "/service/domain/dkim", "/service/send/123"]


class TestTransport:
    """What must never happen in transit."""

    def test_a_bad_proxy_or_ca_bundle_is_a_usage_error(self, tmp_path):
        with pytest.raises(errors.UsageError, match="proxy") as caught:
            HttpClient.over_network(timeout=1, proxy="nonsense://user:password@host:1")
        assert "password" not in str(caught.value)
        empty = tmp_path / "ca.pem"
        empty.write_text("")
        for bundle in (empty, tmp_path / "absent.pem", tmp_path):
            with pytest.raises(errors.UsageError, match="cannot use the certificates"):
                HttpClient.over_network(timeout=1, ca_bundle=str(bundle))


def test_batches_share_a_connection(scripted_server, answering, api_fixture):
    answering(200, api_fixture("register-created.json"))
    url = scripted_server.url
    with Client(auth_url=url, base_url=url, http=HttpClient.over_network(timeout=2)) as client:
        for _ in range(3):
            client.register(TOKEN, SPECS)
    assert (len(scripted_server.requests), scripted_server.connections) == (3, 1)
