"""POST /domain/dkim: interface 2.3, 2.4, 4.2, 7.3."""

from __future__ import annotations

import base64
import re

import dns.name
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import select

from description import DescribedClient
from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.access_log import describe_failure
from dkimctl.service.app import create_app
from dkimctl.service.clients import (
    ClientCredentials,
    ClientState,
    add_delivery,
    change_state,
    create_client,
)
from dkimctl.service.key_pairs import KeyQueue
from dkimctl.service.registrations import Entry, Registrar
from dkimctl.service.schema import registrations

NAMES = {"sign_domain": "example.com", "selector": "s1"}


def _codes(result):
    assert result.status_code == 200
    return [item["result"]["code"] for item in result.json["items"]]


@pytest.fixture
def other_token(get_token, other_credentials):
    return get_token(other_credentials)


@pytest.mark.interface("2.4", "code", "sign_domain", "selector", "start_date", "default", "enable")
@pytest.mark.interface("2.4", "setting_values", "type")
@pytest.mark.interface("3.3", "enable")
@pytest.mark.interface("4.2", "path", "counts", "created")
@pytest.mark.interface("7.3", "code-201")
def test_a_created_item_has_every_field(register, fixed_keys):
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


@pytest.mark.interface("2.3", "key_len-default", "start_date-default", "default", "enable-default")
@pytest.mark.interface("3.3", "enable")
def test_omitted_fields_get_the_defaults(register):
    (item,) = register({"sign_domain": "example.com"}).json["items"]
    assert item["key_len"] == 1024
    assert item["start_date"] == "2021-07-01T00:00+00:00"
    assert item["default"] == 0
    assert item["enable"] is True


@pytest.mark.interface("2.3", "start_date-default")
@pytest.mark.interface("2.4", "start_date", "regist_date")
def test_the_times_are_those_of_the_clock(register, clock):
    clock.now += 3599
    (item,) = register(NAMES).json["items"]
    assert item["regist_date"] == "2021-07-01T00:59:59+00:00"
    assert item["start_date"] == "2021-07-01T00:59+00:00"


@pytest.mark.interface("2.3", "selector-optional")
@pytest.mark.interface("2.4", "fqdn")
def test_a_generated_selector_is_part_of_the_fqdn(register):
    (item,) = register({"sign_domain": "example.com"}).json["items"]
    assert re.fullmatch(r"k[0-9a-f]{8}", item["selector"])
    fqdn = dns.name.from_text(item["setting_values"]["fqdn"])
    expected = (item["selector"].encode(), b"_domainkey", b"example", b"com", b"")
    assert fqdn.labels == expected


@pytest.mark.interface("2.3", "several")
@pytest.mark.interface("2.4", "items", "count", "total")
def test_items_come_in_the_order_of_the_request(register):
    entries = [{"sign_domain": f"d{number}.example"} for number in (3, 1, 2, 5, 4)]
    entries.insert(2, {"sign_domain": "not a domain"})
    result = register(*entries)
    assert [item["sign_domain"] for item in result.json["items"]] == [
        entry["sign_domain"] for entry in entries
    ]
    assert result.json["count"] == result.json["total"] == 6


@pytest.mark.interface("2.4", "result", "message")
@pytest.mark.interface("4.2", "codes")
@pytest.mark.interface("7.3", "200", "code-400")
def test_an_invalid_entry_is_400_and_affects_no_other(register):
    result = register(NAMES, {**NAMES, "selector": "s2", "key_len": 512}, {"selector": 7})
    assert _codes(result) == ["201", "400", "400"]
    _, second, third = result.json["items"]
    assert second == {
        "result": {"code": "400", "message": "key_len must be the number 1024 or 2048"},
        "sign_domain": "example.com",
        "selector": "s2",
    }
    assert set(third) == {"result"}


def test_invalid_names_are_returned_as_sent(register):
    odd = {"sign_domain": "\ud800\u0000é", "selector": "\udfff"}
    (item,) = register(odd).json["items"]
    assert {field: item[field] for field in odd} == odd


@pytest.mark.interface("3.3", "change")
@pytest.mark.interface("7.3", "code-409-own")
def test_a_repetition_is_409_with_the_registered_data(register):
    (first,) = register({**NAMES, "key_len": 2048, "default": 3}).json["items"]
    (again,) = register({**NAMES, "enable": False}).json["items"]
    assert again == {**first, "result": {"code": "409", "message": "already registered"}}


@pytest.mark.interface("2.3", "selector-unique")
def test_names_are_compared_ignoring_case(register):
    register(NAMES)
    (item,) = register({"sign_domain": "EXAMPLE.com", "selector": "S1"}).json["items"]
    assert item["result"]["code"] == "409"
    assert (item["sign_domain"], item["selector"]) == ("example.com", "s1")


def test_a_repetition_makes_no_key(register, ordered_keys):
    register(NAMES)
    register(NAMES)
    register({**NAMES, "selector": "s2"}, {**NAMES, "selector": "s2", "key_len": 2048})
    assert ordered_keys == [1024, 1024]


@pytest.mark.interface("7.3", "code-409")
def test_a_combination_repeated_in_one_request_is_201_then_409(register):
    result = register(NAMES, {**NAMES, "key_len": 2048})
    assert _codes(result) == ["201", "409"]
    first, second = result.json["items"]
    assert second["setting_values"] == first["setting_values"]
    assert second["key_len"] == 1024


@pytest.mark.interface("7.3", "code-409-other")
def test_another_client_gets_409_without_the_data(register, other_token):
    register(NAMES)
    (item,) = register(NAMES, token=other_token).json["items"]
    assert item == {"result": {"code": "409", "message": "already registered"}, **NAMES}


def test_a_deleted_clients_registrations_stay_taken(register, other_token, store, credentials):
    register(NAMES)
    change_state(store, credentials.client_id, ClientState.DELETED)
    assert _codes(register(NAMES, token=other_token)) == ["409"]


@pytest.mark.interface("7.3", "code-500")
def test_a_key_that_cannot_be_made_is_500_and_affects_no_other(
    store, token, clock, fixed_keys, register
):
    def make_short_keys_only(key_len):
        if key_len > 1024:
            raise MemoryError("detail for the log")
        return fixed_keys[key_len]

    app = create_app(store, clock=clock, make_key=make_short_keys_only)
    failing = {**NAMES, "key_len": 2048}
    result = DescribedClient(app).simulate_post(
        "/domain/dkim",
        json={"domains": [{"sign_domain": "a.example"}, failing, failing, {"sign_domain": "x"}]},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert _codes(result) == ["201", "500", "500", "400"]
    item = result.json["items"][1]
    assert {field: item[field] for field in NAMES} == NAMES
    assert "later" in item["result"]["message"]
    assert "detail" not in result.text
    assert _codes(register(failing)) == ["201"], "it can be registered later"


@pytest.mark.interface("7.3", "code-409")
def test_the_first_client_to_store_a_combination_gets_it(
    store, token, other_token, clock, register, fixed_keys
):
    def be_overtaken(key_len):
        assert _codes(register(NAMES, token=other_token)) == ["201"]
        return fixed_keys[key_len]

    app = create_app(store, clock=clock, make_key=be_overtaken)
    result = DescribedClient(app).simulate_post(
        "/domain/dkim", json={"domains": [NAMES]}, headers={"Authorization": f"Bearer {token}"}
    )
    assert _codes(result) == ["409"]
    assert "setting_values" not in result.json["items"][0]


@pytest.mark.interface("2.4", "key_len")
@pytest.mark.parametrize("key_len", [1024, 2048])
def test_the_private_key_of_a_registration_is_stored(store, token, clock, key_len):
    app = create_app(store, clock=clock)
    result = DescribedClient(app).simulate_post(
        "/domain/dkim",
        json={"domains": [{**NAMES, "key_len": key_len}]},
        headers={"Authorization": f"Bearer {token}"},
    )
    value = result.json["items"][0]["setting_values"]["value"]
    public = serialization.load_der_public_key(base64.b64decode(value.partition(" p=")[2]))
    with store.reading() as connection:
        pem = connection.execute(select(registrations.c.private_key)).scalar_one()
    private = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(public, rsa.RSAPublicKey)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert public.key_size == key_len
    assert private.public_key() == public
    assert "PRIVATE" not in result.text


@pytest.fixture
def post(client, token):
    def send(body, **headers):
        headers["Authorization"] = f"Bearer {token}"
        return client.simulate_post("/domain/dkim", body=body, headers=headers)

    return send


@pytest.mark.interface("2.3", "domains")
@pytest.mark.interface("4.2", "json", "bad-request")
@pytest.mark.interface("7.3", "400")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"domains": [{"sign_domain": "example.com", "default": NaN}]}',
        b'{"domains": [{"sign_domain": "ex\xe4mple.com"}]}',
        '{"domains": [{"sign_domain": "example.com"}]}'.encode("utf-16"),
        b"[" * 100_000,
        b"null",
        b'[{"sign_domain": "example.com"}]',
        b'{"Domains": []}',
        b'{"domains": {"sign_domain": "example.com"}}',
        b'{"domains": [{"sign_domain": "example.com"}, null]}',
        b'{"domains": []}',
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_request_that_is_wrong_as_a_whole_is_400(post, body):
    result = post(body)
    assert result.status_code == 400
    message = result.json["message"]
    assert message
    assert result.json == {"items": [], "count": 0, "total": 0, "message": message}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xef\xbb\xbf{}", "The body is not JSON: line 1, column 1 cannot be read."),
        (b'{\n "domains": nil}', "The body is not JSON: line 2, column 13 cannot be read."),
        (b'{"domains": [{"default": -Infinity}]}', "The body is not JSON in UTF-8"),
        (b'{"domains": ' + b"1" * 5000 + b"}", "The body is not JSON in UTF-8"),
    ],
)
def test_the_message_says_what_is_wrong_with_the_request(post, body, message):
    result = post(body)
    assert result.status_code == 400
    assert result.json["message"].startswith(message)


@pytest.mark.interface("4.2", "content-type")
@pytest.mark.parametrize("content_type", ["", "application/json; charset=latin1"])
def test_the_content_type_does_not_matter(post, content_type):
    body = b'{"domains": [{"sign_domain": "example.com"}]}'
    assert post(body, **{"Content-Type": content_type}).status_code == 200


@pytest.mark.interface("8", "batch-size")
def test_a_request_has_at_most_50_domains(register):
    entries = [{"sign_domain": f"d{number}.example"} for number in range(51)]
    result = register(*entries)
    assert result.status_code == 400
    assert "50" in result.json["message"]
    assert _codes(register(*entries[:50])) == ["201"] * 50


@pytest.mark.interface("8", "batch-size")
def test_the_limits_can_be_set(store, token, clock, make_key):
    app = create_app(store, max_domains=2, max_body=200, clock=clock, make_key=make_key)
    headers = {"Authorization": f"Bearer {token}"}

    def status(*entries):
        body = {"domains": entries}
        result = DescribedClient(app).simulate_post("/domain/dkim", json=body, headers=headers)
        return int(result.status_code)

    domain = {"sign_domain": "example.com"}
    assert status(domain, domain) == 200
    assert status(domain, domain, domain) == 400
    assert status(domain, {"sign_domain": "x" * 200}) == 413


@pytest.mark.interface("7.4", "other-statuses")
@pytest.mark.interface("8", "body-size")
def test_a_body_of_more_than_128_kibibytes_is_413(post):
    fitting = b'{"domains": [{"sign_domain": "example.com"}]}'.ljust(128 * 1024)
    assert post(fitting).status_code == 200
    result = post(fitting + b" ")
    assert result.status_code == 413
    assert "131072" in result.json["message"]


def _cancel(client, token, delivery_id):
    headers = {"Authorization": f"Bearer {token}"}
    return client.simulate_delete(f"/send/{delivery_id}", headers=headers)


@pytest.mark.interface("4.3", "delete", "items")
@pytest.mark.interface("5.3", "header", "success")
def test_a_delivery_of_this_client_is_cancelled_once(client, token, store, credentials):
    delivery_id = add_delivery(store, credentials.client_id)
    result = _cancel(client, token, delivery_id)
    assert result.status_code == 200
    assert result.json == {"items": [{"delivery_id": delivery_id}]}
    again = _cancel(client, token, delivery_id)
    assert again.status_code == 404
    assert list(again.json) == ["message"]


@pytest.mark.interface("4.3", "unknown")
def test_a_delivery_of_another_client_is_404_and_not_cancelled(
    client, token, store, credentials, other_credentials
):
    add_delivery(store, other_credentials.client_id, "theirs")
    assert _cancel(client, token, "theirs").status_code == 404
    with pytest.raises(UsageError, match="already exists"):
        add_delivery(store, credentials.client_id, "theirs")


@pytest.mark.interface("4.3", "unknown")
def test_an_unknown_delivery_is_404(client, token):
    for delivery_id in ("unknown", "%FF", "%00", "a%20b", "x" * 5000):
        assert _cancel(client, token, delivery_id).status_code == 404


@pytest.mark.parametrize("delivery_id", ["", "a/b", "a b", "a?b", "ä", "x" * 129])
def test_a_delivery_id_that_cannot_be_in_a_path_is_refused(store, credentials, delivery_id):
    with pytest.raises(UsageError, match="invalid delivery ID"):
        add_delivery(store, credentials.client_id, delivery_id)


def test_only_an_existing_client_has_deliveries(store, credentials):
    with pytest.raises(NegativeAnswer, match="does not exist"):
        add_delivery(store, "unknown")
    change_state(store, credentials.client_id, ClientState.DELETED)
    with pytest.raises(NegativeAnswer, match="final"):
        add_delivery(store, credentials.client_id)


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
    change_state(store, credentials.client_id, ClientState.DELETED)
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
    change_state(store, credentials.client_id, ClientState.DISABLED)
    assert request_token(credentials).status_code == 200


@pytest.mark.interface("3.2", "enable")
def test_after_enabling_a_client_its_tokens_work_again(store, credentials, token, register):
    change_state(store, credentials.client_id, ClientState.DISABLED)
    assert register({"sign_domain": "example.com"}).status_code == 403
    change_state(store, credentials.client_id, ClientState.ACTIVE)
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


def test_our_own_errors_are_logged_with_their_message_in_one_line():
    assert describe_failure(UsageError("a\nb", hint="c")) == "a\\x0ab"


def test_other_errors_are_logged_with_type_and_place_only():
    with pytest.raises(ValueError, match="hush") as caught:
        int("hush")
    assert describe_failure(caught.value).startswith("ValueError at test_resources.py:")
    assert describe_failure(ValueError("hush")) == "ValueError"


def test_the_failures_of_one_request_are_logged_in_one_line(store, credentials, caplog):
    def fail(_key_len):
        raise ValueError("-----BEGIN PRIVATE KEY-----")

    entries = [Entry(f"d{number}.example", "s1", 1024, None, 0, True) for number in range(3)]
    queue = KeyQueue(fail, max_waiting=6, limit=5.0)
    registrar = Registrar(store, queue.make_all, lambda: 0.0)
    items = registrar.register(credentials.client_id, entries)
    assert [item["result"]["code"] for item in items] == ["500"] * 3
    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage().startswith("registering failed: ValueError at test_resources.py:")
