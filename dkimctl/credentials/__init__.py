"""Where client secrets and access tokens live: the environment, the OS keyring, or a file.

`find_credentials` decides which of them a run uses; `open_store` opens the one that
`login` writes to. What they give is a `CredentialStore`, and each knows only the account
it is asked for.
"""

from __future__ import annotations

from dkimctl.credentials.account import Account
from dkimctl.credentials.finding import StoreKind, find_credentials, open_store
from dkimctl.credentials.memory_store import MemoryStore
from dkimctl.credentials.store import CredentialStore
from dkimctl.credentials.text import parse_secret, parse_token

__all__ = [
    "Account",
    "CredentialStore",
    "MemoryStore",
    "StoreKind",
    "find_credentials",
    "open_store",
    "parse_secret",
    "parse_token",
]
