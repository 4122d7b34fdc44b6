"""What all credential stores have in common."""

from __future__ import annotations

import time

import pytest

from dkimctl.credentials.store import Account
from dkimctl.models import Secret, Token

SECRET = Secret("s3cr:et with spaces, \u00e9 and \\ \" '")


def a_token(seconds: float = 3600) -> Token:
    now = time.time() - 1
    return Token(Secret("eyJ0.abc-_~+/="), now + seconds, now)


@pytest.mark.interface("3.1", "expiry")
def test_an_expired_token_is_none(store, account):
    store.set_token(account, a_token(seconds=-1))
    assert store.get_token(account) is None


@pytest.mark.parametrize(
    ("obtained", "lasts"),
    [(60, 3600), (-3601, 3600), (-1, 3601), (-1, float("inf")), (float("nan"), 3600)],
    ids=["tomorrow", "an hour ago", "for too long", "for ever", "never"],
)
def test_a_token_of_a_clock_that_was_set_is_none(store, account, obtained, lasts):
    obtained_at = time.time() + obtained
    store.set_token(account, Token(Secret("abc"), obtained_at + lasts, obtained_at))
    assert store.get_token(account) is None


def test_only_the_refused_token_is_discarded(store, account):
    refused, new = a_token(), a_token(1800)
    store.set_secret(account, SECRET)
    store.set_token(account, new)
    store.discard_token(account, refused)
    assert store.get_token(account) == new
    store.discard_token(account, new)
    assert store.get_token(account) is None
    assert store.get_secret(account) == SECRET


def test_delete_removes_both_and_can_be_repeated(store, account):
    store.set_secret(account, SECRET)
    store.set_token(account, a_token())
    for _ in range(2):
        store.delete(account)
        assert store.get_secret(account) is None
        assert store.get_token(account) is None


@pytest.mark.parametrize(
    "other",
    [
        Account("https://auth.other", "https://api.example", "client-1"),
        Account("https://auth.example", "https://api.other", "client-1"),
        Account("https://auth.example", "https://api.example", "client-2"),
        Account("https://api.example", "https://auth.example", "client-1"),
        Account('https://auth.example", "https://api.example', "", "client-1"),
    ],
)
def test_an_account_gets_only_its_own_credentials(store, account, other):
    store.set_secret(account, SECRET)
    store.set_token(account, a_token())
    assert store.get_secret(other) is None
    assert store.get_token(other) is None
    store.delete(other)
    assert store.get_secret(account) == SECRET
