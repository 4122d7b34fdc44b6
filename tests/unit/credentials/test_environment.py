"""Credentials in the environment take precedence over stored ones, for their account only."""

from __future__ import annotations

import math
import time

import pytest
from keyring.backends import fail

from dkimctl.credentials.keyring_store import KEYRING_SERVICE, KeyringStore, ReferencedSecrets
from dkimctl.credentials.store import find_credentials
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token


def test_the_environment_comes_first_and_what_it_obtains_stays_in_memory(account, keyring_backend):
    now = time.time()
    stored, stored_token = KeyringStore(keyring_backend), Token(Secret("stored"), now + 3600, now)
    stored.set_secret(account, Secret("stored-secret"))
    stored.set_token(account, stored_token)
    credentials = find_credentials({"DKIMCTL_CLIENT_SECRET": "given\n"}, account, stored)
    assert credentials.name == "environment"
    assert credentials.get_secret(account) == Secret("given")
    assert credentials.get_token(account) is None
    renewed = Token(Secret("renewed"), now + 3600, now)
    assert credentials.set_token(account, renewed) is True
    assert credentials.get_token(account) == renewed
    assert stored.get_token(account) == stored_token
    other = account._replace(client_id="client-2")
    assert credentials.get_token(other) is None
    assert credentials.get_secret(other) is None


def test_a_token_alone_works_without_a_keyring(account):
    environ = {"DKIMCTL_ACCESS_TOKEN": "token"}
    credentials = find_credentials(environ, account, KeyringStore(fail.Keyring()))
    given = Token(Secret("token"), math.inf)
    assert credentials.get_token(account) == given
    credentials.discard_token(account, given)
    assert credentials.get_token(account) == given, "it is the user's to remove"
    assert credentials.get_token(account._replace(client_id="client-2")) is None
    assert credentials.get_secret(account) is None
    assert credentials.secret_source(account) is None


@pytest.mark.parametrize("variable", ["DKIMCTL_ACCESS_TOKEN", "DKIMCTL_CLIENT_SECRET"])
def test_a_variable_that_no_header_can_carry_is_named_and_not_quoted(variable, account):
    with pytest.raises(CredentialsError) as caught:
        find_credentials({variable: "hunter2\tx"}, account, KeyringStore(fail.Keyring()))
    assert variable in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_a_referenced_secret_is_read_or_it_is_said_how_to_store_it(keyring_backend):
    def refusal(reference, backend=keyring_backend, environ=()) -> str:
        secrets = ReferencedSecrets(dict(environ), KeyringStore(backend))
        with pytest.raises(CredentialsError) as caught:
            secrets.read(reference)
        return f"{caught.value.message} {caught.value.hint}"

    secrets = ReferencedSecrets({"A": "hunter2"}, KeyringStore(fail.Keyring()))
    assert secrets.read("env/A").reveal() == "hunter2"
    for environ in ({}, {"A": ""}):
        assert "the environment variable A is not set" in refusal("env/A", environ=environ)
    assert "`keyring set dkimctl-dns a`" in refusal("keyring/a")
    keyring_backend.set_password(KEYRING_SERVICE, "a", "")
    assert "no entry a of the service dkimctl-dns" in refusal("keyring/a")
    no_keyring = refusal("keyring/a", fail.Keyring())
    assert no_keyring.startswith("cannot read keyring/a: this machine has no keyring")
    assert "env/NAME" in no_keyring
