"""Credentials in the environment take precedence over stored ones, for their account only."""

from __future__ import annotations

import math
import threading
import time

import pytest
from keyring.backends import fail

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.sources import KEYRING_SERVICE, ReferencedSecrets, find_credentials
from dkimctl.credentials.store import Account
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

NOW = time.time()
STORED_TOKEN = Token(Secret("stored-token"), NOW + 3600, NOW)


@pytest.fixture
def stored(account, keyring_backend):
    store = KeyringStore(keyring_backend)
    store.set_secret(account, Secret("stored-secret"))
    store.set_token(account, STORED_TOKEN)
    return store


def test_a_secret_in_the_environment_comes_first(account, stored):
    credentials = find_credentials({"DKIMCTL_CLIENT_SECRET": "given\n"}, account, stored)
    assert credentials.name == "environment"
    assert credentials.get_secret(account) == Secret("given")
    assert credentials.get_token(account) is None


def test_a_token_in_the_environment_comes_first(account, stored):
    credentials = find_credentials({"DKIMCTL_ACCESS_TOKEN": "given"}, account, stored)
    given = Token(Secret("given"), math.inf)
    assert credentials.get_token(account) == given
    credentials.discard_token(account, given)
    assert credentials.get_token(account) == given, "it is the user's to remove"


def test_a_token_alone_works_without_a_keyring(account):
    environ = {"DKIMCTL_ACCESS_TOKEN": "token"}
    credentials = find_credentials(environ, account, KeyringStore(fail.Keyring()))
    assert credentials.get_token(account) == Token(Secret("token"), math.inf)
    assert credentials.get_secret(account) is None
    assert credentials.secret_source(account) is None


def test_tokens_obtained_with_the_environment_stay_in_memory(account, stored):
    credentials = find_credentials({"DKIMCTL_CLIENT_SECRET": "given"}, account, stored)
    renewed = Token(Secret("renewed"), NOW + 3600, NOW)
    assert credentials.set_token(account, renewed) is True
    assert credentials.get_token(account) == renewed
    assert stored.get_token(account) == STORED_TOKEN


def test_the_environment_applies_to_its_account_only(account, stored):
    environ = {"DKIMCTL_ACCESS_TOKEN": "token", "DKIMCTL_CLIENT_SECRET": "secret"}
    credentials = find_credentials(environ, account, stored)
    other = Account(account.auth_url, account.base_url, "client-2")
    assert credentials.get_token(other) is None
    assert credentials.get_secret(other) is None


@pytest.mark.parametrize("variable", ["DKIMCTL_ACCESS_TOKEN", "DKIMCTL_CLIENT_SECRET"])
def test_a_variable_that_no_header_can_carry_is_named_and_not_quoted(variable, account, stored):
    with pytest.raises(CredentialsError) as caught:
        find_credentials({variable: "hunter2\tx"}, account, stored)
    assert variable in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


VARIABLE = "env/DNS_TOKEN"
ENTRY = "keyring/route53"


class HungKeyring:
    """Never answers, like one that waits to be unlocked."""

    def get_password(self, service: str, username: str) -> str | None:
        threading.Event().wait()
        return None


def secrets(environ=None, backend=None, seconds: float = 3) -> ReferencedSecrets:
    return ReferencedSecrets(environ or {}, KeyringStore(backend, seconds=seconds))


def refusal(secrets: ReferencedSecrets, reference: str) -> CredentialsError:
    with pytest.raises(CredentialsError) as caught:
        secrets.read(reference)
    assert caught.value.hint
    return caught.value


def test_a_variable_is_read_and_the_keyring_left_alone():
    secret = secrets({"DNS_TOKEN": "hunter2"}, fail.Keyring()).read(VARIABLE)
    assert secret.reveal() == "hunter2"


@pytest.mark.parametrize("environ", [{}, {"DNS_TOKEN": ""}])
def test_a_missing_variable_is_named(environ):
    error = refusal(secrets(environ), VARIABLE)
    assert "the environment variable DNS_TOKEN is not set" in error.message


@pytest.mark.parametrize("stored", [None, ""])
def test_a_missing_entry_is_told_how_to_make_it(keyring_backend, stored):
    if stored is not None:
        keyring_backend.set_password(KEYRING_SERVICE, "route53", stored)
    error = refusal(secrets(backend=keyring_backend), ENTRY)
    assert "no entry route53 of the service dkimctl-dns" in error.message
    assert "`keyring set dkimctl-dns route53`" in error.hint


def test_without_a_keyring_the_environment_is_suggested():
    error = refusal(secrets(backend=fail.Keyring()), ENTRY)
    assert error.message == "cannot read keyring/route53: this machine has no keyring"
    assert "env/NAME" in error.hint


def test_a_keyring_that_hangs_is_given_up_and_not_asked_again():
    hung = secrets(backend=HungKeyring(), seconds=0.2)
    start = time.monotonic()
    for _ in range(5):
        assert "did not answer within 0.2 s" in refusal(hung, ENTRY).message
    assert time.monotonic() - start < 0.2 * 4
