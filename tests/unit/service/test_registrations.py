from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials, create_client
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import KeyPair
from dkimctl.service.registrations import (
    Registrar,
    RegistrationName,
    delete_registration,
    find_all,
    list_registrations,
    read_name,
    require_registration,
    set_enabled,
)
from dkimctl.service.validation import Entry, Rejection
from fakes import Clock

FORM = "application/x-www-form-urlencoded"
NAME = RegistrationName("example.com", "s1")
ENTRY = Entry("example.com", None, 1024, None, 0, True)
MakeKeys = Callable[[str, Sequence[int]], list[KeyPair | Exception]]


@pytest.fixture
def make_keys(fixed_keys: dict[int, KeyPair]) -> MakeKeys:
    return lambda _client, lengths: [fixed_keys[key_len] for key_len in lengths]


def _entry(domain: str) -> Entry:
    return Entry(domain, "s1", 1024, None, 0, True)


def _codes(items) -> list[str]:
    return [item["result"]["code"] for item in items]


def test_a_generated_selector_that_is_taken_is_replaced(
    store: Store, credentials: ClientCredentials, make_keys: MakeKeys
) -> None:
    selectors = iter(["k1", "k1", "k2", "k2", "k3"])
    registrar = Registrar(store, make_keys, lambda: 0.0, selectors.__next__)
    items = registrar.register(credentials.client_id, [ENTRY, ENTRY])
    items += registrar.register(credentials.client_id, [ENTRY])
    assert _codes(items) == ["201"] * 3
    assert [item["selector"] for item in items] == ["k1", "k2", "k3"]


def test_without_a_free_selector_the_entry_fails(
    store: Store, credentials: ClientCredentials, make_keys: MakeKeys
) -> None:
    registrar = Registrar(store, make_keys, lambda: 0.0, lambda: "k1")
    assert _codes(registrar.register(credentials.client_id, [ENTRY, ENTRY])) == ["201", "500"]


def test_a_store_that_fails_fails_what_it_should_store(
    sqlite_store: Store, make_keys: MakeKeys
) -> None:
    client_id = create_client(sqlite_store).client_id
    registrar = Registrar(sqlite_store, make_keys, lambda: 0.0)
    registrar.register(client_id, [_entry("b.example")])
    entries = [_entry("a.example"), Rejection("x", "s1", "no"), _entry("b.example")]

    def take_away(client_id: str, lengths: Sequence[int]) -> list[KeyPair | Exception]:
        keys = make_keys(client_id, lengths)
        sqlite_store.path.rename(sqlite_store.path.with_suffix(".away"))
        return keys

    items = Registrar(sqlite_store, take_away, lambda: 0.0).register(client_id, entries)
    assert _codes(items) == ["500", "400", "409"]


def test_a_data_file_that_is_away_refuses_the_next_request(
    sqlite_store: Store, make_keys: MakeKeys
) -> None:
    client_id = create_client(sqlite_store).client_id
    registrar = Registrar(sqlite_store, make_keys, lambda: 0.0)
    sqlite_store.path.unlink()
    with suppress(UsageError):  # if reading has noticed it
        assert _codes(registrar.register(client_id, [_entry("a.example")])) == ["500"]
    with pytest.raises(UsageError, match="moved or replaced"), sqlite_store.writing():
        pass


def test_the_failure_of_one_entry_affects_no_other(
    store: Store, credentials: ClientCredentials, fixed_keys: dict[int, KeyPair]
) -> None:
    entries = [_entry("a.example"), _entry("b.example"), _entry("a.example")]
    registrar = Registrar(store, lambda *_: [ZeroDivisionError(), fixed_keys[1024]], lambda: 0.0)
    assert _codes(registrar.register(credentials.client_id, entries)) == ["500", "201", "500"]


@pytest.fixture
def registered(register: Any) -> Any:
    return register({"sign_domain": "Example.COM", "selector": "S1"})


def test_a_disabled_registration_can_be_enabled_again(store: Store, registered: Any) -> None:
    set_enabled(store, NAME, False)
    assert find_all(store, [NAME])[NAME].enable is False
    set_enabled(store, NAME, True)
    assert find_all(store, [NAME])[NAME].enable is True


def test_a_deleted_registration_can_be_registered_again(
    store: Store, registered: Any, register: Any
) -> None:
    delete_registration(store, NAME)
    assert list(list_registrations(store)) == []
    again = register({"sign_domain": "example.com", "selector": "s1"})
    assert again.json["items"][0]["result"]["code"] == "201"


@pytest.mark.parametrize("operation", [delete_registration, require_registration, set_enabled])
def test_an_unknown_registration_is_a_no(store: Store, registered: Any, operation: Any) -> None:
    more = [True] if operation is set_enabled else []
    for name in (RegistrationName("example.com", "s2"), RegistrationName("example.net", "s1")):
        with pytest.raises(NegativeAnswer, match="is not registered"):
            operation(store, name, *more)
    assert len(list(list_registrations(store))) == 1


def test_names_are_read_without_case() -> None:
    assert read_name("XN--BCHER-KVA.example", "S1.Mail") == ("xn--bcher-kva.example", "s1.mail")


@pytest.mark.parametrize(
    ("domain", "selector"),
    [("bücher.example", "s1"), ("example.com", "a/b"), ("", ""), ("a", "s1")],
)
def test_a_name_that_cannot_be_registered_is_a_usage_error(domain: str, selector: str) -> None:
    with pytest.raises(UsageError, match="invalid domain or selector"):
        read_name(domain, selector)


def test_of_many_names_those_are_found_that_are_registered_and_no_others(
    store: Store, make_keys: MakeKeys, credentials: ClientCredentials
) -> None:
    names = [RegistrationName(f"{n % 9}.example", f"s{n}") for n in range(120)]
    entries = [Entry(*name, 1024, None, 0, True) for name in names[::2]]
    registrar = Registrar(store, make_keys, lambda: 0.0)
    assert _codes(registrar.register(credentials.client_id, entries)) == ["201"] * 60
    assert find_all(store, names).keys() == {*names[::2]}
    crossed = [RegistrationName("0.example", "s2"), RegistrationName("2.example", "s0")]
    assert find_all(store, crossed) == {}, "each has the domain and the selector of others"


@pytest.mark.interface("8", "rate")
def test_a_request_whose_keys_take_too_long_is_429_and_registers_nothing(
    sqlite_store: Store, clock: Clock, basic: Callable[[str, str], str]
) -> None:
    release = threading.Event()

    def slow(key_len: int) -> KeyPair:
        release.wait(20)
        return KeyPair("v=DKIM1; g=*; k=rsa; p=AAAA", b"")

    app = create_app(sqlite_store, clock=clock, make_key=slow, key_threads=1, max_domains=5000)
    client = TestClient(app)

    def token(credentials: ClientCredentials) -> str:
        headers = {"Authorization": basic(credentials.client_id, credentials.secret)}
        body = "grant_type=client_credentials"
        return str(
            client.simulate_post(
                "/oauth2/token", body=body, headers=headers, content_type=FORM
            ).json["access_token"]
        )

    tokens = [token(create_client(sqlite_store)) for _ in range(2)]

    def register(token: str, count: int) -> Result:
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
