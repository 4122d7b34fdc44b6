"""The embedded service as the commands use it: its extra, its data file, the sandbox."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dkimctl.errors import UsageError
from dkimctl.models.secret import Secret, Token
from dkimctl.settings.paths import data_dir
from dkimctl.settings.profile import SANDBOX_CLIENT_ID

if TYPE_CHECKING:
    from dkimctl.service.encryption import PrivateKeyEncryptor
    from dkimctl.service.store import Store

_PASSPHRASE = "DKIMCTL_SERVICE_PASSPHRASE"  # noqa: S105 - the variable's name


@contextlib.contextmanager
def needs_service_extra() -> Iterator[None]:
    """Around the imports of the service: says so where its packages are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the embedded service is not installed (no module {error.name})",
            hint="pip install 'dkimctl[service]'",
        ) from error


def open_service_store(data: Path | None, sealer: PrivateKeyEncryptor | None = None) -> Store:
    """The service's data file; by default one in the user's data directory."""
    with needs_service_extra():
        from dkimctl.service.store import Store
    return Store.open(data or data_dir() / "service.db", sealer)


def open_key_store(data: Path | None) -> Store:
    """The same, for who makes keys: the passphrase must be the one that the file's keys have."""
    with needs_service_extra():
        from dkimctl.service.passphrase import require_none
    store = open_service_store(data, _sealer())
    if store.sealer is None:
        try:
            with store.reading() as connection:
                require_none(connection, store.path)
        except BaseException:
            store.close()
            raise
    return store


def _sealer() -> PrivateKeyEncryptor | None:
    if not os.environ.get(_PASSPHRASE):
        return None
    from dkimctl.service.encryption import MAX_PASSPHRASE, PrivateKeyEncryptor

    # In no variable, which a report of the error could show.
    if len(os.fsencode(os.environ[_PASSPHRASE])) > MAX_PASSPHRASE:
        raise UsageError(
            f"{_PASSPHRASE} has more than {MAX_PASSPHRASE} octets",
            hint="use a shorter one: OpenSSL could not open the keys with this",
        )
    return PrivateKeyEncryptor(os.fsencode(os.environ[_PASSPHRASE]))


class Sandbox:
    """The service in this very process, on a data file of its own, with one client."""

    def __init__(self) -> None:
        self._store = open_key_store(data_dir() / "sandbox.db")
        from dkimctl.service.app import create_app

        # The answer tells of a failure; without a handler Python would print a traceback.
        logging.getLogger("dkimctl.service").addHandler(logging.NullHandler())
        _ensure_client(self._store)
        self.app = create_app(self._store)

    def issue_token(self) -> Token:
        """A token without a secret, which nobody keeps: the store is at hand."""
        from dkimctl.service import tokens

        now = time.time()
        text = tokens.issue(self._store, SANDBOX_CLIENT_ID, now)
        return Token(Secret(text), now + tokens.LIFETIME)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()


def _ensure_client(store: Store) -> None:
    from dkimctl.service.clients import create_client, list_clients

    def is_there() -> bool:
        return any(client.client_id == SANDBOX_CLIENT_ID for client in list_clients(store))

    try:
        if not is_there():
            create_client(store, SANDBOX_CLIENT_ID)
    except UsageError:
        if not is_there():  # otherwise another process was quicker
            raise
