"""Validation of the entries of a registration request: interface 2.3."""

from __future__ import annotations

import re

import pytest
from jsonschema import ValidationError

from description import assert_valid, description
from dkimctl.errors import UsageError
from dkimctl.service.clients import create_client
from dkimctl.service.key_pairs import KeyQueue, KeysNotInTime
from dkimctl.service.registrations import (
    Entry,
    RegistrationName,
    Rejection,
    find_all,
    list_registrations,
    read_name,
    register,
    validate_entry,
)

DESCRIBED = description()["components"]["schemas"]["RegistrationEntry"]
ENTRY = Entry("example.com", None, 1024, None, 0, True)


@pytest.fixture
def make_keys(fixed_keys):
    return lambda _client, lengths: [fixed_keys[key_len] for key_len in lengths]


def _codes(items):
    return [item["result"]["code"] for item in items]


def test_a_generated_selector_that_is_taken_is_not_that_of_the_entry(
    store, credentials, other_credentials, make_keys, monkeypatch
):
    monkeypatch.setattr("secrets.token_hex", lambda _: "1")
    service = store, make_keys, lambda: 0.0
    assert _codes(register(*service, credentials.client_id, [ENTRY, ENTRY])) == ["201", "500"]
    (registered,) = list_registrations(store)
    for client in (credentials, other_credentials):
        assert _codes(register(*service, client.client_id, [ENTRY])) == ["500"]
    assert [*list_registrations(store)] == [registered]


def test_a_store_that_fails_fails_what_it_should_store(sqlite_store, make_keys, caplog):
    client_id = create_client(sqlite_store).client_id
    known = ENTRY._replace(sign_domain="b.example", selector="s1")
    register(sqlite_store, make_keys, lambda: 0.0, client_id, [known])
    entries = [ENTRY, Rejection("x", "s1", "no"), known]

    def take_away(client_id, lengths):
        keys = make_keys(client_id, lengths)
        sqlite_store.path.rename(sqlite_store.path.with_suffix(".away"))
        return keys

    items = register(sqlite_store, take_away, lambda: 0.0, client_id, entries)
    assert _codes(items) == ["500", "400", "409"]
    (record,) = caplog.records
    assert re.match("registering failed: .* was moved or replaced", record.getMessage())


@pytest.mark.parametrize(
    ("domain", "selector"),
    [("bücher.example", "s1"), ("example.com", "a/b"), ("", ""), ("a", "s1")],
)
def test_a_name_that_cannot_be_registered_is_a_usage_error(domain, selector):
    with pytest.raises(UsageError, match="invalid domain or selector"):
        read_name(domain, selector)


def test_of_many_names_those_are_found_that_are_registered_and_no_others(
    store, make_keys, credentials
):
    names = [RegistrationName(f"{n % 9}.example", f"s{n}") for n in range(120)]
    entries = [Entry(*name, 1024, None, 0, True) for name in names[::2]]
    items = register(store, make_keys, lambda: 0.0, credentials.client_id, entries)
    assert _codes(items) == ["201"] * 60
    assert find_all(store, names).keys() == {*names[::2]}
    crossed = [RegistrationName("0.example", "s2"), RegistrationName("2.example", "s0")]
    assert find_all(store, crossed) == {}, "each has the domain and the selector of others"


@pytest.mark.interface("8", "rate")
def test_a_request_whose_keys_take_too_long_is_429_and_registers_nothing(
    store, register, monkeypatch
):
    def refuse(*_):
        raise KeysNotInTime(7)

    monkeypatch.setattr(KeyQueue, "_require_room", refuse)
    refused = register({"sign_domain": "example.com"})
    assert (refused.status_code, list(refused.json)) == (429, ["message"])
    assert refused.headers["Retry-After"] == "7"
    assert list(list_registrations(store)) == []


DOMAIN_OF_232_OCTETS = ".".join(["d" * 57] * 4) + "d"
LONGEST_SELECTOR = "s" * (253 - len("._domainkey.") - len(DOMAIN_OF_232_OCTETS))
VALID = {
    "sign_domain": ["a.b", "mail.example.co.jp", "xn--r8jz45g.xn--zckzah", "1.2.3.com", "a--b.com",
                    f"{'a' * 63}.com"],
    "selector": ["s", "2026-01", "a.b.c", "s" * 63],
    "key_len": [1024, 2048, 1024.0],
    "start_date": ["2021-07-01T00:00+09:00", "2024-02-29T23:59-00:30", "0001-01-01T00:00+00:00"],
    "default": [0, 1, -1, 7.0, 2**63 - 1],
    "enable": [True, False],
}  # fmt: skip
INVALID = {
    "sign_domain": [
        None, 7, "", "com", "example.com.", "example..com", "-a.com", "a-.com", "_a.example.com",
        "*.example.com", "exämple.com", "example。com", "example.com\n", "exa mple.com",
        "192.0.2.1",
        "exam\u212ale.com",  # the Kelvin sign: a k in lower case
        f"{'a' * 64}.com", "\ud800.com",
    ],
    "selector": [None, 20260101, "", ".", "a.", "a..b", "-a", "a_b", "12:30", "ä", "s" * 64],
    "key_len": [None, "2048", True, 0, 512, 2047, 4096, -1024, [1024], 1e400],
    "start_date": [
        None, 20210701, "2021-07-01", "2021-07-01T00:00", "2021-07-01T00:00Z",
        "2021-07-01T00:00:00+09:00", "2021-07-01 00:00+09:00", "2021-07-01T00:00+0900",
        "2021-07-01T24:00+09:00", "2021-07-01T00:00+24:00", "2021-02-29T00:00+09:00",
        "0000-01-01T00:00+09:00", "2021-07-01T00:00+09:00\n", "\uff12021-07-01T00:00+09:00",
    ],
    "default": [None, "0", True, False, 0.5, 2**63, -(10**400), 1e400, [], {}],
    "enable": [None, 0, 1, "true", []],
}  # fmt: skip


def _cases(table):
    return [(field, value) for field, values in table.items() for value in values]


@pytest.mark.interface("2.3", "sign_domain", "selector", "key_len", "start_date")
@pytest.mark.interface("2.3", "default-others", "enable", "mandatory")
@pytest.mark.parametrize(("field", "value"), _cases(VALID))
def test_a_valid_field_is_kept_and_the_others_have_defaults(field, value):
    sent = {"sign_domain": "example.com", field: value}
    assert_valid(sent, DESCRIBED)
    entry = validate_entry(sent)
    expected = Entry("example.com", None, 1024, None, 0, True)._replace(**{field: value})
    assert entry == expected
    assert {type(each) for each in entry} <= {str, int, bool, type(None)}, "1.0 is 1"


@pytest.mark.interface("2.3", "sign_domain", "selector", "key_len", "start_date")
@pytest.mark.interface("2.3", "default-others", "enable")
@pytest.mark.interface("8", "key-lengths")
@pytest.mark.parametrize(("field", "value"), _cases(INVALID))
def test_an_invalid_field_is_named(field, value):
    sent = {"sign_domain": "example.com", field: value}
    # No schema knows days that do not exist; and Python's `$` matches before a final newline.
    if not str(value).startswith(("2021-02-29", "0000")) and not str(value).endswith("\n"):
        with pytest.raises(ValidationError):
            assert_valid(sent, DESCRIBED)
    rejection = validate_entry(sent)
    assert isinstance(rejection, Rejection)
    assert rejection.message.startswith(f"{field} must be")


@pytest.mark.interface("2.3", "mandatory")
@pytest.mark.interface("7.3", "code-400")
def test_all_problems_are_reported_at_once():
    assert validate_entry({"selector": "s1"}).message.startswith("sign_domain must be")
    message = validate_entry(dict.fromkeys(INVALID)).message
    assert [part.split()[0] for part in message.split("; ")] == [*INVALID]


def test_names_are_converted_to_lower_case():
    assert validate_entry({"sign_domain": "Ab.COM", "selector": "S1.M"})[:2] == ("ab.com", "s1.m")


def test_the_whole_name_has_at_most_253_octets():
    entry = {"sign_domain": DOMAIN_OF_232_OCTETS, "selector": LONGEST_SELECTOR}
    assert isinstance(validate_entry(entry), Entry)
    assert "253" in validate_entry({**entry, "selector": LONGEST_SELECTOR + "s"}).message
    assert isinstance(validate_entry({"sign_domain": DOMAIN_OF_232_OCTETS}), Entry)
    assert "253" in validate_entry({"sign_domain": "d" + DOMAIN_OF_232_OCTETS}).message
