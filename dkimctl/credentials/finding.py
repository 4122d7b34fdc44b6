"""Which credentials a run uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from dkimctl.credentials.account import Account
from dkimctl.credentials.memory_store import EnvironmentStore
from dkimctl.credentials.store import CredentialStore
from dkimctl.credentials.text import parse_secret, parse_token
from dkimctl.models.secret import Secret, Token

StoreKind: TypeAlias = Literal["keyring", "file"]

_TOKEN_VARIABLE = "DKIMCTL_ACCESS_TOKEN"  # noqa: S105 - the variable's name
_SECRET_VARIABLE = "DKIMCTL_CLIENT_SECRET"  # noqa: S105


def open_store(
    kind: StoreKind,
    state_dir: Path,
    *,
    seconds: float = 3,
    notify: Callable[[str], None] = lambda text: None,
) -> CredentialStore:
    """The store of `kind`, which nothing is asked of yet; `state_dir` holds the file's.

    No call of a keyring takes longer than `seconds`; `notify` is told where one takes long.
    """
    match kind:
        case "keyring":
            from dkimctl.credentials.keyring_store import KeyringStore

            return KeyringStore(seconds=seconds, notify=notify)
        case "file":
            from dkimctl.credentials.file_store import FileStore

            return FileStore(state_dir / "credentials.json")
        case _:
            assert_never(kind)


def find_credentials(
    environ: Mapping[str, str], account: Account, stored: CredentialStore
) -> CredentialStore:
    """Where this run takes the secret and token of `account` from, and keeps new tokens.

    A token or a secret in the environment comes before the `stored` ones; an empty variable
    counts as unset. A token from the environment has no known expiry (infinity), and its
    secret is the environment's, else the stored one. Raises CredentialsError for a variable
    that holds what no header can carry.
    """
    token = parse_token(Secret(environ.get(_TOKEN_VARIABLE, "")), _TOKEN_VARIABLE)
    secret = parse_secret(Secret(environ.get(_SECRET_VARIABLE, "")), _SECRET_VARIABLE)
    if token is None and secret is None:
        return stored
    given = EnvironmentStore(stored)
    if secret is not None:
        given.set_secret(account, secret)
    if token is not None:
        given.set_token(account, Token(token, math.inf))
    return given
