"""Registered domains by their first characters."""

from __future__ import annotations

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger, domains_with_prefix
from dkimctl.models.registration import Registration

ACCOUNT = {"base_url": "https://example.com", "client_id": "id"}


@pytest.fixture
def matching(tmp_path, make_registration):
    """The domains of an account with some registrations that begin with a prefix."""
    path = tmp_path / "ledger.db"
    names = ["a.example", "A.example", "ab.example", "abc.example", "b.example"]
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([make_registration(name, f"s{n}") for n, name in enumerate(names)])
        ledger.record([Registration("ataken.example", "s", code="409", message="taken")])
    with Ledger.open(path, base_url="https://example.com", client_id="other") as ledger:
        ledger.record([make_registration("a.other.example")])

    def matching(prefix: str, limit: int = 10, **account) -> list[str]:
        return domains_with_prefix(path, **(ACCOUNT | account), prefix=prefix, limit=limit)

    return matching


def test_they_are_sorted_each_once_regardless_of_case_and_of_this_account(matching):
    assert [name.lower() for name in matching("a")] == ["a.example", "ab.example", "abc.example"]
    assert matching("AB") == ["ab.example", "abc.example"]
    assert len(matching("")) == 4
    assert matching("a", client_id="other") == ["a.other.example"]
    assert matching("a", client_id="unknown") == matching("%") == matching("*") == []


def test_of_more_than_the_limit_the_last_is_among_them(matching):
    assert [name.lower() for name in matching("", 3)] == ["a.example", "ab.example", "b.example"]


def test_a_ledger_that_others_can_change_is_not_read(matching, tmp_path):
    (tmp_path / "ledger.db").chmod(0o666)
    with pytest.raises(LedgerError):
        matching("a")
