from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from description import DescribedClient
from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.app import create_app
from dkimctl.service.clients import create_client
from dkimctl.service.key_pairs import KeyPair
from dkimctl.service.registrations import (
    Entry,
    Registrar,
    RegistrationName,
    Rejection,
    delete_registration,
    find_all,
    list_registrations,
    read_name,
    require_registration,
    set_enabled,
)

FORM = "application/x-www-form-urlencoded"
NAME = RegistrationName("example.com", "s1")
ENTRY = Entry("example.com", None, 1024, None, 0, True)


@pytest.fixture
def make_keys(fixed_keys):
    return lambda _client, lengths: [fixed_keys[key_len] for key_len in lengths]


def _entry(domain):
    return Entry(domain, "s1", 1024, None, 0, True)


def _codes(items):
    return [item["result"]["code"] for item in items]


def test_a_generated_selector_that_is_taken_is_replaced(store, credentials, make_keys):
    selectors = iter(["k1", "k1", "k2", "k2", "k3"])
    registrar = Registrar(store, make_keys, lambda: 0.0, selectors.__next__)
    items = registrar.register(credentials.client_id, [ENTRY, ENTRY])
    items += registrar.register(credentials.client_id, [ENTRY])
    assert _codes(items) == ["201"] * 3
    assert [item["selector"] for item in items] == ["k1", "k2", "k3"]


def test_without_a_free_selector_the_entry_fails(store, credentials, make_keys):
    registrar = Registrar(store, make_keys, lambda: 0.0, lambda: "k1")
    assert _codes(registrar.register(credentials.client_id, [ENTRY, ENTRY])) == ["201", "500"]


def test_a_store_that_fails_fails_what_it_should_store(sqlite_store, make_keys):
    client_id = create_client(sqlite_store).client_id
    registrar = Registrar(sqlite_store, make_keys, lambda: 0.0)
    registrar.register(client_id, [_entry("b.example")])
    entries = [_entry("a.example"), Rejection("x", "s1", "no"), _entry("b.example")]

    def take_away(client_id, lengths):
        keys = make_keys(client_id, lengths)
        sqlite_store.path.rename(sqlite_store.path.with_suffix(".away"))
        return keys

    items = Registrar(sqlite_store, take_away, lambda: 0.0).register(client_id, entries)
    assert _codes(items) == ["500", "400", "409"]


@pytest.fixture
def registered(register):
    return register({"sign_domain": "Example.COM", "selector": "S1"})


@pytest.mark.parametrize("operation", [delete_registration, require_registration, set_enabled])
def test_an_unknown_registration_is_a_no(store, registered, operation):
    more = [True] if operation is set_enabled else []
    for name in (RegistrationName("example.com", "s2"), RegistrationName("example.net", "s1")):
        with pytest.raises(NegativeAnswer, match="is not registered"):
            operation(store, name, *more)
    assert len(list(list_registrations(store))) == 1


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
    registrar = Registrar(store, make_keys, lambda: 0.0)
    assert _codes(registrar.register(credentials.client_id, entries)) == ["201"] * 60
    assert find_all(store, names).keys() == {*names[::2]}
    crossed = [RegistrationName("0.example", "s2"), RegistrationName("2.example", "s0")]
    assert find_all(store, crossed) == {}, "each has the domain and the selector of others"


@pytest.mark.interface("8", "rate")
def test_a_request_whose_keys_take_too_long_is_429_and_registers_nothing(
    sqlite_store, clock, basic
):
    release = threading.Event()

    def slow(key_len):
        release.wait(20)
        return KeyPair("v=DKIM1; g=*; k=rsa; p=AAAA", b"")

    app = create_app(sqlite_store, clock=clock, make_key=slow, key_threads=1, max_domains=5000)
    client = DescribedClient(app)

    def token(credentials):
        headers = {"Authorization": basic(credentials.client_id, credentials.secret)}
        body = "grant_type=client_credentials"
        return str(
            client.simulate_post(
                "/oauth2/token", body=body, headers=headers, content_type=FORM
            ).json["access_token"]
        )

    tokens = [token(create_client(sqlite_store)) for _ in range(2)]

    def register(token, count):
        domains = [{"sign_domain": f"d{n}.example", "key_len": 2048} for n in range(count)]
        return client.simulate_post(
            "/domain/dkim",
            body=json.dumps({"domains": domains}),
            headers={"Authorization": f"Bearer {token}"},
        )

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(register, tokens[0], 1)
        time.sleep(0.2)
        started = time.monotonic()
        refused = register(tokens[1], 1000)
        taken = time.monotonic() - started
        release.set()
        assert first.result().json["items"][0]["result"]["code"] == "201"
    assert (refused.status_code, list(refused.json)) == (429, ["message"])
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert taken < 2
    assert len(list(list_registrations(sqlite_store))) == 1
