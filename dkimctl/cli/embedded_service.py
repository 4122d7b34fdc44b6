"""The embedded service for the commands: its extra, its data file, the sandbox."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dkimctl.errors import UsageError
from dkimctl.models.secret import Secret, Token
from dkimctl.settings.paths import data_dir
from dkimctl.settings.profile import SANDBOX_CLIENT_ID

if TYPE_CHECKING:
    from dkimctl.service.database.store import Store
    from dkimctl.service.keys.encryption import PrivateKeyEncryptor

_PASSPHRASE = "DKIMCTL_SERVICE_PASSPHRASE"  # noqa: S105 - the variable's name


@contextlib.contextmanager
def needs_service_extra() -> Iterator[None]:
    """Context for imports of the service: raises UsageError if the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the embedded service is not installed (no module {error.name})",
            hint="run `pip install 'dkimctl[service]'`",
        ) from error


def open_service_store(data: Path | None, *, may_create: bool = False) -> Store:
    """Open the service's data file; by default the one in the user's data directory.

    Raises UsageError if it is missing, unless it `may_create` it.
    """
    with needs_service_extra():
        from dkimctl.service.database.store import Store
    path = data or default_data()
    if not may_create and _is_missing(path):
        option = data_option(data)
        create = f"create it with `dkimctl service client create{option}`"
        raise UsageError(
            f"{path}: the service has no such data file",
            hint=f"check the name, or {create}" if data else f"{create}, or name one with --data",
        )
    _require_directory(data)
    return Store.open(path)


def open_served_store(data: Path | None) -> Store:
    """Open or create the data file to serve. Raises UsageError."""
    _require_directory(data)
    return _open_key_store(data or default_data())


def data_option(data: Path | None) -> str:
    """The option that names the data file in a command, after a space."""
    return f" --data {shlex.quote(str(data))}" if data else ""


def default_data() -> Path:
    """The data file that is used if none is named."""
    return data_dir() / "service.db"


def _require_directory(data: Path | None) -> None:
    """Only the default directory is created: the name of another may have a typo."""
    if data is not None and _is_missing(data.parent):
        raise UsageError(
            f"{data}: the directory {data.parent} does not exist",
            hint="create the directory, or name another data file with --data",
        )


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # reported when it is opened
        return False
    return False


def _open_key_store(path: Path) -> Store:
    """For commands that make keys: they need the passphrase of the file, if it has one."""
    with needs_service_extra():
        from dkimctl.service.database.store import Store
        from dkimctl.service.keys.passphrase import require_no_passphrase
    store = Store.open(path, _encryptor_from_environment())
    if store.encryptor is None:
        try:
            with store.reading() as connection:
                require_no_passphrase(connection, store.path)
        except BaseException:
            store.close()
            raise
    return store


def _encryptor_from_environment() -> PrivateKeyEncryptor | None:
    if not os.environ.get(_PASSPHRASE):
        return None
    from dkimctl.service.keys.encryption import MAX_PASSPHRASE, PrivateKeyEncryptor

    # Not in a local variable, which an error report might show.
    if len(os.fsencode(os.environ[_PASSPHRASE])) > MAX_PASSPHRASE:
        raise UsageError(
            f"{_PASSPHRASE} has more than {MAX_PASSPHRASE} octets",
            hint="use a shorter passphrase: OpenSSL could not decrypt the keys with this one",
        )
    return PrivateKeyEncryptor(os.fsencode(os.environ[_PASSPHRASE]))


class Sandbox:
    """The service in this process, with its own data file and one client."""

    def __init__(self) -> None:
        self._store = _open_key_store(data_dir() / "sandbox.db")
        from dkimctl.service.app import create_app

        # Failures show in the answers; without a handler Python would print them as well.
        logging.getLogger("dkimctl.service").addHandler(logging.NullHandler())
        _ensure_client(self._store)
        self.app = create_app(self._store)

    def issue_token(self) -> Token:
        """Issue a token directly; the secret of the sandbox's client is not stored anywhere."""
        from dkimctl.service.http.authorization import TOKEN_LIFETIME, issue_token

        now = time.time()
        text = issue_token(self._store, SANDBOX_CLIENT_ID, now)
        return Token(Secret(text), now + TOKEN_LIFETIME, now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()


def _ensure_client(store: Store) -> None:
    from dkimctl.service.clients import create_client, list_clients

    def exists() -> bool:
        return any(client.client_id == SANDBOX_CLIENT_ID for client in list_clients(store))

    try:
        if not exists():
            create_client(store, SANDBOX_CLIENT_ID)
    except UsageError:
        if not exists():  # otherwise another process has created it first
            raise
