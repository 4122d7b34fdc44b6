"""Which keys sign; each private key says whose it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.clients import create_client, delete_client, disable_client
from dkimctl.service.registrations import StoredRegistration, add_all
from dkimctl.service.signers import read_plan

NOW = datetime(2021, 7, 1, tzinfo=UTC)
KEY = "-----BEGIN PRIVATE KEY-----\nkey of "


@pytest.fixture
def store(sqlite_store):
    return sqlite_store


@pytest.fixture
def register(store):
    """Store a registration of the client "first", or of another one."""
    for client_id in ("first", "second"):
        create_client(store, client_id)

    def register(
        sign_domain,
        selector,
        start_date="2021-01-01T00:00+00:00",
        *,
        client_id="first",
        default=0,
        enable=True,
        regist_date="2021-01-01T00:00:00+00:00",
    ):
        registration = StoredRegistration(
            client_id, sign_domain, selector, 2048, start_date, default, enable, "v", regist_date
        )
        assert add_all(store, {registration: f"{KEY}{sign_domain} {selector}".encode()})

    return register


def selectors(plan):
    return {domain: key.selector for domain, key in plan.by_domain.items()}


def third_party(plan):
    return plan.third_party.fqdn if plan.third_party else None


def test_the_latest_key_whose_start_date_has_come_signs(store, register):
    register("example.com", "old", "2021-01-01T00:00+00:00")
    register("example.com", "new", "2021-07-01T09:00+09:00")
    register("example.com", "next", "2021-07-01T00:00-00:01")
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"example.com": "new"}
    assert plan.by_domain["example.com"].private_key == f"{KEY}example.com new".encode()
    assert plan.left_out == {"not yet in effect": 1, "superseded": 1}


def test_of_keys_with_one_start_date_the_latest_registered_signs(store, register):
    register("example.com", "a", regist_date="2021-02-01T00:00:01+00:00")
    register("example.com", "b", regist_date="2021-02-01T09:00:00+09:00")
    assert selectors(read_plan(store, NOW)) == {"example.com": "a"}


def test_a_disabled_registration_leaves_the_one_before_it(store, register):
    register("example.com", "s1")
    register("example.com", "s2", "2021-02-01T00:00+00:00", enable=False)
    register("off.example", "s1", enable=False)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"example.com": "s1"}
    assert plan.left_out == {"disabled": 2}


def test_keys_of_a_deleted_client_are_left_out_and_those_of_a_disabled_one_are_not(store, register):
    register("one.example", "s1")
    register("two.example", "s1", client_id="second")
    disable_client(store, "first")
    delete_client(store, "second")
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"one.example": "s1"}
    assert plan.left_out == {"of deleted clients": 1}


def test_a_later_client_does_not_take_over_the_mail_of_a_domain(store, register):
    register("example.com", "s1", regist_date="2021-01-01T00:00:00+00:00")
    register(
        "example.com", "s2", "2021-06-01T00:00+00:00", client_id="second", default=1,
        regist_date="2021-06-01T00:00:00+00:00",
    )  # fmt: skip
    plan = read_plan(store, NOW, "second")
    assert selectors(plan) == {"example.com": "s1"}
    assert plan.third_party is None
    assert plan.contested == ["example.com"]
    assert plan.left_out == {"of a second client of the domain": 1}


@pytest.mark.parametrize("default", [1, 2, -1])
def test_a_default_registration_is_for_domains_without_a_key(store, register, default):
    register("us.example", "own")
    register("us.example", "third", "2021-06-01T00:00+00:00", default=default)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"us.example": "own"}
    assert third_party(plan) == "third._domainkey.us.example"
    assert [key.selector for key in plan.keys] == ["own", "third"]
    assert not plan.left_out


def test_a_default_registration_signs_its_own_domain_if_nothing_else_does(store, register):
    register("us.example", "third", default=1)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"us.example": "third"}
    assert third_party(plan) == "third._domainkey.us.example"
    assert len(plan.keys) == 1


def test_the_latest_default_registration_of_all_domains_is_used(store, register):
    register("a.example", "s1", "2021-03-01T00:00+00:00", default=1)
    register("b.example", "s1", "2021-02-01T00:00+00:00", default=1)
    register("c.example", "s1", "2022-01-01T00:00+00:00", default=1)
    register("d.example", "s1", "2021-04-01T00:00+00:00", default=1, enable=False)
    assert third_party(read_plan(store, NOW)) == "s1._domainkey.a.example"


def test_no_client_signs_mail_of_another_client_without_being_chosen(store, register):
    register("us.example", "s1", default=1)
    register("them.example", "s1", client_id="second")
    plan = read_plan(store, NOW)
    assert plan.third_party is None
    assert plan.third_party_owners == ["first"]
    assert third_party(read_plan(store, NOW, "first")) == "s1._domainkey.us.example"
    assert third_party(read_plan(store, NOW, "second")) is None


@pytest.mark.parametrize("client_id", ["unknown", "second"])
def test_an_unknown_or_deleted_client_cannot_be_chosen(store, register, client_id):
    delete_client(store, "second")
    with pytest.raises(NegativeAnswer, match="--third-party-client"):
        read_plan(store, NOW, client_id)


@pytest.mark.parametrize(
    ("domain", "selector"),
    [
        ("../etc", "s1"), ("example.com", "../../x"), ("example.com", "a/b"), ("a b.com", "s1"),
        ("example.com", "%"), ("*.example.com", "s1"), ("example.com", "s1\n* x"),
        ("EXAMPLE.com", "s1"), ("example.com:x", "s1"), ("example.com", ""),
    ],
)  # fmt: skip
def test_names_that_nobody_can_have_registered_are_refused(store, register, domain, selector):
    register(domain, selector)
    with pytest.raises(UsageError, match="invalid registration"):
        read_plan(store, NOW)


def test_a_key_with_another_passphrase_than_the_rest_is_refused(store, register):
    register("example.com", "s1")
    with store.writing() as connection:
        key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
        connection.execute(text("UPDATE registrations SET private_key = :key"), {"key": key})
    with pytest.raises(UsageError, match="another passphrase"):
        read_plan(store, NOW)


def test_no_private_key_is_in_the_representation(store, register):
    register("example.com", "s1")
    assert "key of" not in repr(read_plan(store, NOW))


def test_the_first_and_last_dates_that_can_be_registered_are_understood(store, register):
    register("first.example", "s1", "0001-01-01T00:00+23:59")
    register("last.example", "s1", "9999-12-31T23:59-23:59")
    assert selectors(read_plan(store, NOW)) == {"first.example": "s1"}


@pytest.mark.parametrize("date", ["", "soon", "2021-01-01T00:00"])
def test_a_date_that_the_service_does_not_write_is_an_error(store, register, date):
    register("example.com", "s1", date)
    with pytest.raises(UsageError, match=r"invalid registration 's1' of 'example\.com'"):
        read_plan(store, NOW)
