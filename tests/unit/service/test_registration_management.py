from __future__ import annotations

from typing import Any

import pytest

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.database.store import Store
from dkimctl.service.registration_management import (
    delete_registration,
    list_registrations,
    read_name,
    require_registration,
    set_enabled,
)
from dkimctl.service.registrations import RegistrationName, find_all

NAME = RegistrationName("example.com", "s1")


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
