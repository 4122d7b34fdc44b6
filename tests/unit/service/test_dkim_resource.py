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
from dkimctl.service.app import create_app
from dkimctl.service.clients import delete_client
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
    delete_client(store, credentials.client_id)
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
        (
            b'{"domains": [{"default": -Infinity}]}',
            "The body is not JSON: -Infinity is not a JSON number.",
        ),
        (b'{"domains": ' + b"1" * 5000 + b"}", "A number in the body has too many digits."),
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
