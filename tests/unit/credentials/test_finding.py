from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from keyring.backends import fail

from dkimctl.credentials.account import Account
from dkimctl.credentials.finding import find_credentials, open_store
from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.memory_store import MemoryStore
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret, Token

STORED_TOKEN = Token(Secret("stored-token"), time.time() + 3600)


@pytest.fixture
def stored(account: Account) -> MemoryStore:
    store = MemoryStore()
    store.set_secret(account, Secret("stored-secret"))
    store.set_token(account, STORED_TOKEN)
    return store


@pytest.mark.parametrize(
    "environ",
    [{}, {"DKIMCTL_CLIENT_SECRET": "", "DKIMCTL_ACCESS_TOKEN": ""}],
    ids=["unset", "empty"],
)
def test_without_the_environment_the_store_is_used(
    environ: dict[str, str], account: Account, stored: MemoryStore
) -> None:
    assert find_credentials(environ, account, stored) is stored


def test_a_secret_in_the_environment_comes_first(account: Account, stored: MemoryStore) -> None:
    found = find_credentials({"DKIMCTL_CLIENT_SECRET": "given\n"}, account, stored)
    assert found.name == "environment"
    assert found.get_secret(account) == Secret("given")
    assert found.get_token(account) is None


def test_a_token_in_the_environment_comes_first(account: Account, stored: MemoryStore) -> None:
    found = find_credentials({"DKIMCTL_ACCESS_TOKEN": "given"}, account, stored)
    assert found.get_token(account) == Token(Secret("given"), math.inf)


def test_a_token_alone_is_renewed_with_the_stored_secret(
    account: Account, stored: MemoryStore
) -> None:
    found = find_credentials({"DKIMCTL_ACCESS_TOKEN": "given"}, account, stored)
    assert found.get_secret(account) == Secret("stored-secret")


def test_token_and_secret_in_the_environment_need_no_store(account: Account) -> None:
    environ = {"DKIMCTL_ACCESS_TOKEN": "token", "DKIMCTL_CLIENT_SECRET": "secret"}
    found = find_credentials(environ, account, KeyringStore(fail.Keyring()))
    assert found.get_secret(account) == Secret("secret")
    assert found.get_token(account) == Token(Secret("token"), math.inf)


def test_a_token_alone_works_where_no_keyring_is(account: Account) -> None:
    environ = {"DKIMCTL_ACCESS_TOKEN": "token"}
    found = find_credentials(environ, account, KeyringStore(fail.Keyring()))
    assert found.get_token(account) == Token(Secret("token"), math.inf)
    assert found.get_secret(account) is None
    assert found.secret_source(account) is None


def test_tokens_got_with_the_environment_stay_in_memory(
    account: Account, stored: MemoryStore
) -> None:
    found = find_credentials({"DKIMCTL_CLIENT_SECRET": "given"}, account, stored)
    renewed = Token(Secret("renewed"), time.time() + 3600)
    assert found.set_token(account, renewed) is True
    assert found.get_token(account) == renewed
    assert stored.get_token(account) == STORED_TOKEN


def test_the_environment_serves_its_account_alone(account: Account, stored: MemoryStore) -> None:
    environ = {"DKIMCTL_ACCESS_TOKEN": "token", "DKIMCTL_CLIENT_SECRET": "secret"}
    found = find_credentials(environ, account, stored)
    other = Account(account.auth_url, account.base_url, "client-2")
    assert found.get_token(other) is None
    assert found.get_secret(other) is None


@pytest.mark.parametrize("variable", ["DKIMCTL_ACCESS_TOKEN", "DKIMCTL_CLIENT_SECRET"])
def test_a_variable_that_no_header_can_carry_is_named_not_quoted(
    variable: str, account: Account, stored: MemoryStore
) -> None:
    with pytest.raises(CredentialsError) as caught:
        find_credentials({variable: "hunter2\tx"}, account, stored)
    assert variable in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_each_kind_of_store_opens(tmp_path: Path) -> None:
    assert open_store("file", tmp_path).name == f"file {tmp_path / 'credentials.json'}"
    assert isinstance(open_store("keyring", tmp_path), KeyringStore)
    assert list(tmp_path.iterdir()) == []
