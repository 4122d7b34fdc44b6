"""The endpoints: interface 2 to 5, 7 and 8. Whole answers are in test_description.py."""

from __future__ import annotations

import itertools
import json
import logging
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from description import DescribedClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientState, add_delivery, change_state, create_client

NAMES = {"sign_domain": "example.com", "selector": "s1"}


def _codes(result):
    assert result.status_code == 200
    return [item["result"]["code"] for item in result.json["items"]]


@pytest.fixture
def other_token(get_token, other_credentials):
    return get_token(other_credentials)


@pytest.fixture
def post(client, token):
    def send(body, **headers):
        headers["Authorization"] = f"Bearer {token}"
        return client.simulate_post("/domain/dkim", body=body, headers=headers)

    return send


@pytest.fixture
def register_at(token):
    def register(app, *entries):
        headers = {"Authorization": f"Bearer {token}"}
        return DescribedClient(app).simulate_post(
            "/domain/dkim", json={"domains": entries}, headers=headers
        )

    return register


# POST /domain/dkim.


@pytest.mark.interface("2.4", "code", "sign_domain", "selector", "start_date", "default", "enable")
@pytest.mark.interface("2.4", "key_len")
@pytest.mark.interface("2.4", "setting_values", "type")
@pytest.mark.interface("3.3", "enable")
@pytest.mark.interface("4.2", "path", "counts", "created")
@pytest.mark.interface("7.3", "code-201", "code-409-own")
@pytest.mark.interface("3.3", "change")
@pytest.mark.interface("2.3", "selector-unique")
def test_a_created_item_has_every_field_and_is_409_when_it_is_repeated(register, fixed_keys):
    start = "2021-08-01T00:00+09:00"
    stated = {"key_len": 2048, "start_date": start, "default": 1, "enable": False}
    result = register({**NAMES, **stated})
    assert result.headers["Content-Type"] == "application/json"
    item = {
        "result": {"code": "201", "message": "created"},
        **NAMES,
        **stated,
        "setting_values": {
            "fqdn": "s1._domainkey.example.com",
            "type": "TXT",
            "value": fixed_keys[2048].value,
        },
        "regist_date": "2021-07-01T00:00:00+00:00",
    }
    assert result.json == {"items": [item], "count": 1, "total": 1}
    (again,) = register({"sign_domain": "EXAMPLE.com", "selector": "S1"}).json["items"]
    assert again == {**item, "result": {"code": "409", "message": "already registered"}}


@pytest.mark.interface("2.3", "key_len-default", "start_date-default", "default", "enable-default")
@pytest.mark.interface("2.3", "selector-optional")
@pytest.mark.interface("2.4", "start_date", "regist_date", "fqdn")
@pytest.mark.interface("3.3", "enable")
def test_what_is_omitted_is_decided_by_the_service(register, clock):
    clock.now += 3599
    (item,) = register({"sign_domain": "example.com"}).json["items"]
    assert re.fullmatch(r"k[0-9a-f]{8}", item["selector"])
    assert item["setting_values"]["fqdn"] == f"{item['selector']}._domainkey.example.com"
    assert (item["key_len"], item["default"], item["enable"]) == (1024, 0, True)
    assert item["regist_date"] == "2021-07-01T00:59:59+00:00"
    assert item["start_date"] == "2021-07-01T00:59+00:00"


@pytest.mark.interface("2.3", "several")
@pytest.mark.interface("2.4", "items", "count", "total", "result", "message")
@pytest.mark.interface("4.2", "codes")
@pytest.mark.interface("7.3", "200", "code-400")
def test_each_entry_has_its_result_in_the_order_of_the_request(register):
    odd = {"sign_domain": "\ud800\u0000é", "selector": "\udfff"}
    entries = [{"sign_domain": f"d{number}.example"} for number in (3, 1, 2)]
    result = register(*entries, odd, {**NAMES, "key_len": 512}, {"selector": 7}, NAMES)
    assert _codes(result) == ["201", "201", "201", "400", "400", "400", "201"]
    items = result.json["items"]
    assert [item["sign_domain"] for item in items[:3]] == ["d3.example", "d1.example", "d2.example"]
    assert {field: items[3][field] for field in odd} == odd, "names come back as sent"
    message = "key_len must be the number 1024 or 2048"
    assert items[4] == {"result": {"code": "400", "message": message}, **NAMES}
    assert set(items[5]) == {"result"}
    assert result.json["count"] == result.json["total"] == 7


@pytest.mark.interface("7.3", "code-409")
def test_a_combination_repeated_in_one_request_is_201_then_409(register, ordered_keys):
    first, second = register(NAMES, {**NAMES, "key_len": 2048}).json["items"]
    assert (first["result"]["code"], second["result"]["code"]) == ("201", "409")
    assert {**first, "result": None} == {**second, "result": None}
    register(NAMES)
    assert ordered_keys == [1024], "no other key was made"


@pytest.mark.interface("7.3", "code-409-other")
def test_another_client_gets_409_without_the_data(register, other_token, store, credentials):
    register(NAMES)
    for state in (ClientState.DISABLED, ClientState.DELETED):
        (item,) = register(NAMES, token=other_token).json["items"]
        assert item == {"result": {"code": "409", "message": "already registered"}, **NAMES}
        change_state(store, credentials.client_id, state)  # and they stay taken


@pytest.mark.interface("7.3", "code-500")
def test_a_key_that_cannot_be_made_is_500_and_affects_no_other(
    store, clock, fixed_keys, register_at, caplog
):
    def make_short_keys_only(key_len):
        if key_len > 1024:
            raise MemoryError("-----BEGIN PRIVATE KEY-----")
        return fixed_keys[key_len]

    app = create_app(store, clock=clock, make_key=make_short_keys_only)
    failing = {**NAMES, "key_len": 2048}
    result = register_at(app, {"sign_domain": "a.example"}, failing, failing, {"sign_domain": "x"})
    assert _codes(result) == ["201", "500", "500", "400"]
    item = result.json["items"][1]
    assert {**NAMES, "result": item["result"]} == item
    assert "later" in item["result"]["message"]
    (record,) = caplog.records  # one line for all
    assert record.getMessage().startswith("registering failed: MemoryError at test_resources.py:")
    assert "PRIVATE" not in result.text + caplog.text
    assert _codes(register_at(app, NAMES)) == ["201"], "it can be registered later"


@pytest.mark.interface("2.3", "domains")
@pytest.mark.interface("4.2", "json", "bad-request")
@pytest.mark.interface("7.3", "400")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "line 1, column 1"),
        (b'{\n "domains": nil}', "line 2, column 13"),
        (b"\xef\xbb\xbf{}", "line 1, column 1"),
        (b'{"domains": [{"sign_domain": "example.com", "default": NaN}]}', "not JSON"),
        (b'{"domains": [{"default": -Infinity}]}', "not JSON"),
        (b'{"domains": [{"sign_domain": "ex\xe4mple.com"}]}', "not JSON in UTF-8"),
        (b"[" * 100_000, "too deep"),
        (b'{"domains": ' + b"1" * 5000 + b"}", "too long"),
        (b"null", "an array of objects"),
        (b'[{"sign_domain": "example.com"}]', "an array of objects"),
        (b'{"domains": {"sign_domain": "example.com"}}', "an array of objects"),
        (b'{"domains": [{"sign_domain": "example.com"}, null]}', "an array of objects"),
        (b'{"domains": []}', "domains is empty."),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_a_request_that_is_wrong_as_a_whole_is_400(post, body, message):
    result = post(body)
    assert result.status_code == 400
    assert message in result.json["message"]
    assert result.json == {"items": [], "count": 0, "total": 0, "message": result.json["message"]}


JSON: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).map(json.dumps)


@given(body=st.binary(max_size=200) | JSON | JSON.map('{{"domains": {}}}'.format))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_is_answered_as_described(post, body):
    assert post(body).status_code in {200, 400}


@pytest.mark.interface("4.2", "content-type")
@pytest.mark.interface("7.4", "other-statuses")
@pytest.mark.interface("8", "body-size")
@pytest.mark.parametrize("content_type", ["", "application/json; charset=latin1"])
def test_a_body_has_any_type_and_at_most_128_kibibytes(post, content_type):
    fitting = b'{"domains": [{"sign_domain": "example.com"}]}'.ljust(128 * 1024)
    assert post(fitting, **{"Content-Type": content_type}).status_code == 200
    result = post(fitting + b" ")
    assert result.status_code == 413
    assert "131072" in result.json["message"]


@pytest.mark.interface("8", "batch-size")
@pytest.mark.parametrize(("most", "limits"), [(50, {}), (2, {"max_domains": 2})])
def test_a_request_has_at_most_50_domains_or_as_many_as_are_set(
    store, clock, make_key, register_at, most, limits
):
    app = create_app(store, clock=clock, make_key=make_key, **limits)
    entries = [{"sign_domain": f"d{number}.example"} for number in range(most + 1)]
    result = register_at(app, *entries)
    assert (result.status_code, str(most) in result.json["message"]) == (400, True)
    assert _codes(register_at(app, *entries[:most])) == ["201"] * most


# DELETE /send/<delivery_id>.


@pytest.mark.interface("4.3", "delete", "items", "unknown")
@pytest.mark.interface("5.3", "header", "success")
def test_a_delivery_is_cancelled_once_by_its_client_alone(client, token, other_token, store,
                                                          credentials):  # fmt: skip
    def cancel(delivery_id, token=token):
        headers = {"Authorization": f"Bearer {token}"}
        result = client.simulate_delete(f"/send/{delivery_id}", headers=headers)
        return result.status_code, result.json

    delivery_id = add_delivery(store, credentials.client_id)
    assert cancel(delivery_id, other_token)[0] == 404
    assert cancel(delivery_id) == (200, {"items": [{"delivery_id": delivery_id}]})
    for unknown in (delivery_id, "unknown", "%FF", "%00", "a%20b", "x" * 5000):
        assert cancel(unknown) == (404, {"message": "There is no such delivery."})


# POST /oauth2/token.


def _assert_error(result, error):
    assert result.status_code == 400
    assert result.json == {"error": error}
    assert result.headers["Content-Type"] == "application/json;charset=UTF-8"
    assert result.headers["Cache-Control"] == "no-store"


@pytest.mark.interface("2.2", "error", "invalid_client")
@pytest.mark.interface("3.2", "deleted")
@pytest.mark.interface("4.1", "authorization", "credentials", "bad-request")
@pytest.mark.interface("5.1", "credentials")
@pytest.mark.interface("7.1", "invalid_client")
@pytest.mark.interface("7.4", "other-fields")
def test_wrong_or_malformed_credentials_are_an_invalid_client(
    request_token, store, basic, monkeypatch
):
    with monkeypatch.context() as context:
        context.setattr("secrets.token_urlsafe", lambda _: "se:cr::t")
        create_client(store, "name")
    right = basic("name", "se:cr::t").removeprefix("Basic ")  # of 13 octets, so it ends in "="
    assert request_token(None, authorization=f"Basic  {right} ").status_code == 200
    for wrong in (
        *("", "Basic", "Basic !!!!", f"Bearer {right}"),
        *(basic("name", "wrong"), basic("unknown", "se:cr::t"), basic("name", "")),
        "Basic bmFtZQ==",  # "name", no colon
        f"Basic {right.rstrip('=')}",  # padding missing
        f"Basic {right}====",  # padding that is not needed
        f"Basic \xa0{right}",  # a blank that is not of ASCII
        "Basic /////w==",  # not UTF-8
    ):
        _assert_error(request_token(None, authorization=wrong), "invalid_client")
    _assert_error(request_token(None), "invalid_client")
    change_state(store, "name", ClientState.DELETED)
    _assert_error(request_token(None, authorization=f"Basic {right}"), "invalid_client")


FORM, RIGHT = "application/x-www-form-urlencoded", "grant_type=client_credentials"


@pytest.mark.interface("2.1", "access_token", "other-fields")
@pytest.mark.interface("2.2", "invalid_client")
@pytest.mark.interface("4.1", "path", "content-type", "grant_type", "other-bodies")
@pytest.mark.interface("7.1", "200", "400", "405-parameter")
@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (f"scope=dkim&{RIGHT}", "Application/X-WWW-Form-URLEncoded; charset=UTF-8", None),
        ("grant_type=password", FORM, "unsupported_grant_type"),
        ("grant_type=Client_Credentials", FORM, "unsupported_grant_type"),
        ("grant_type=client_credentials%20", FORM, "unsupported_grant_type"),
        (f"{RIGHT}&{RIGHT}", FORM, "invalid_request"),
        ('{"grant_type": "client_credentials"}', FORM, "invalid_request"),
        (RIGHT, "text/plain", "invalid_request"),
        (b"grant_type=\xff", FORM, "invalid_request"),
        ("a=1&" * 101 + RIGHT, FORM, "invalid_request"),
        *((body, FORM, 405) for body in ("", "a=b", "grant_type=", "grant_type&a=b")),
    ],
)
def test_the_form_has_one_grant_type(request_token, credentials, body, content_type, expected):
    result = request_token(credentials, body=body, content_type=content_type)
    if expected == 405:
        assert (result.status_code, "grant_type" in result.json["message"]) == (405, True)
    elif expected:
        _assert_error(result, expected)
    else:
        assert (result.status_code, result.headers["Cache-Control"]) == (200, "no-store")
        assert result.headers["Content-Type"] == "application/json"
        assert 800 <= len(result.json["access_token"]) <= 1200
        assert result.json.items() >= {"token_type": "Bearer", "expires_in": 3600}.items()


# The bearer token on protected requests.


@pytest.fixture(params=[("POST", "/domain/dkim"), ("DELETE", "/send/unknown")])
def send(client, request):
    """Send a protected request that has no effect: 400 or 404 if it is authorized."""
    return lambda authorization: client.simulate_request(
        *request.param, headers={"Authorization": authorization} if authorization else {}
    )


@pytest.fixture
def works(send):
    """Whether a request with a token is authorized."""
    return lambda token: send(f"Bearer {token}").status_code in (400, 404)


@pytest.mark.interface("3.1", "reuse", "expiry", "expired", "several", "independent")
@pytest.mark.interface("5.2", "expired")
@pytest.mark.interface("8", "token-lifetime", "token-reuse")
def test_each_token_works_any_number_of_times_until_an_hour_after_issue(
    works, token, get_token, credentials, clock
):
    clock.now -= 1
    assert not works(token), "nor for longer, after a clock was set back"
    clock.now += 1801
    second = get_token(credentials)
    clock.now += 1799.9
    for _ in range(3):
        assert [works(token), works(second)] == [True, True]
    clock.now += 0.1
    assert [works(token), works(second)] == [False, True]
    clock.now += 1800
    assert not works(second)


@pytest.mark.interface("3.2", "disabled", "disabled-use", "enable", "restore")
@pytest.mark.interface("5.2", "disabled")
def test_tokens_of_a_disabled_client_are_403_until_it_is_enabled(
    works, token, get_token, credentials, store
):
    change_state(store, credentials.client_id, ClientState.DISABLED)
    assert not works(token)
    assert not works(get_token(credentials)), "it still gets tokens"
    for state in (ClientState.ACTIVE, ClientState.DELETED):
        change_state(store, credentials.client_id, state)
        assert works(token) is (state is ClientState.ACTIVE)


@pytest.mark.interface("3.1", "issue")
@pytest.mark.interface("3.2", "active")
@pytest.mark.interface("4.3", "delete")
@pytest.mark.interface("5.1", "bearer")
@pytest.mark.interface("5.2", "header", "authenticated", "unauthorized", "missing")
@pytest.mark.interface("5.3", "header", "missing", "registering")
@pytest.mark.interface("7.2", "401", "403")
@pytest.mark.interface("7.4", "other-fields")
def test_only_a_token_of_the_service_gives_access(send, token):
    for header in ("Bearer {}", "bearer {}", "BEARER  {} "):
        assert send(header.format(token)).status_code in (400, 404)
    for header in ("Bearer unknown", "Bearer \xe9\xff", "Bearer a b", f"Bearer {'x' * 5000}",
                   "Bearer \xa0{}", "Bearer \x85{}"):  # fmt: skip
        result = send(header.format(token))
        assert (result.status_code, result.json) == (403, {"message": "Forbidden"})
    for missing in (None, "", "Bearer", "Bearer  ", "Basic YTpi", "x" * 1000):
        result = send(missing)
        assert (result.status_code, result.json) == (401, {"message": "Unauthorized"})
        assert result.headers["WWW-Authenticate"] == "Bearer"


# Errors that all endpoints answer in the same way.


@pytest.mark.interface("4.2", "path")
@pytest.mark.interface("4.3", "other-endpoints")
@pytest.mark.interface("5.3", "registering")
@pytest.mark.interface("7.1", "405-method")
@pytest.mark.interface("7.4", "other-statuses", "other-fields")
def test_another_path_is_404_and_another_method_405(client, token):
    for path in ("/", "/oauth2/token/", "/domain", "/domain/dkim/x", "/send/a/b"):
        result = client.simulate_get(path)
        assert (result.status_code, result.json) == (404, {"message": "Not Found"})
    headers = {"Authorization": f"Bearer {token}"}
    for path, allowed in (("/domain/dkim", "POST"), ("/send/x", "DELETE"),
                          ("/oauth2/token", "POST"), ("/readyz", "GET, HEAD")):  # fmt: skip
        for method in ("PUT", "OPTIONS"):
            result = client.simulate_request(method, path, headers=headers)
            assert (result.status_code, result.json) == (405, {"message": "Method Not Allowed"})
            assert result.headers["Allow"] == allowed
            status = 401 if path in ("/domain/dkim", "/send/x") else 405
            assert client.simulate_request(method, path).status_code == status


@pytest.mark.interface("4.1", "other-bodies")
@pytest.mark.interface("4.2", "error")
@pytest.mark.interface("7.1", "500")
@pytest.mark.interface("7.3", "500")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/domain/dkim", 401), ("GET", "/readyz", 200), ("GET", "/nothing", 404)],
)
def test_each_answer_has_the_date_of_its_clock(client, clock, method, path, status):
    answer = client.simulate_request(method, path)
    assert (answer.status_code, answer.headers["Date"]) == (status, "Thu, 01 Jul 2021 00:00:00 GMT")


def test_an_unexpected_error_is_500_and_described_only_in_the_log(
    store, token, credentials, basic, caplog
):
    calls = itertools.count()

    def broken_clock():
        if next(calls) % 2:  # for the Date of the answer
            return 0.0
        raise RuntimeError("what it failed on")

    broken = DescribedClient(create_app(store, clock=broken_clock))
    pair = basic(credentials.client_id, credentials.secret)
    for path, authorization in (("/domain/dkim", f"Bearer {token}"), ("/oauth2/token", pair)):
        headers = {"Authorization": authorization, "Content-Type": FORM}
        result = broken.simulate_post(path, body=RIGHT, headers=headers)
        assert (result.status_code, result.json) == (500, {"message": "Internal Server Error"})
    for name, level, line in caplog.record_tuples:
        assert (name, level) == ("dkimctl.service.resources", logging.ERROR)
        assert line.startswith("a request failed: RuntimeError at test_resources.py:")
    assert len(caplog.records) == 2
    assert token not in caplog.text


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # which stores anything
def test_an_answer_that_cannot_be_rendered_is_500_in_json(store, register):
    register(NAMES)
    with store.writing() as connection:
        connection.execute(text("UPDATE registrations SET value = x'ff'"))
    result = register(NAMES)
    assert (result.status_code, result.json) == (500, {"message": "Internal Server Error"})
