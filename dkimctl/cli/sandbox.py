"""The embedded service for the commands: its extra, its data file, the sandbox."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.errors import UsageError
from dkimctl.files import data_dir
from dkimctl.models import Secret, Token
from dkimctl.service.location import Location, default_location
from dkimctl.settings.profile import SANDBOX_CLIENT_ID

if TYPE_CHECKING:
    from dkimctl.service.database import Store

INSTALL = "pip install '.[service]'"  # no registry has dkimctl


def is_installed() -> bool:
    """Whether the extra is there, without importing it."""
    from importlib.util import find_spec  # 3 ms

    return all(map(find_spec, ("falcon", "sqlalchemy", "alembic", "cryptography", "granian")))


def sandbox_data() -> Path:
    return data_dir() / "sandbox.db"


@contextlib.contextmanager
def needs_service_extra() -> Iterator[None]:
    """Context for imports of the service: raises UsageError if the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        text = f"the embedded service is not installed (no module {error.name})"
        raise UsageError(text, hint=f"in the clone of dkimctl, run `{INSTALL}`") from error


def open_service_store(
    data: Location | None, *, may_create: bool = False, with_keys: bool = False
) -> Store:
    """Open the service's data; by default what the environment names, or the user's data file.

    Private keys can be read only `with_keys`. Raises UsageError for a missing data file, unless it
    `may_create` it.
    """
    with needs_service_extra():
        from dkimctl.service.database import open_key_store, open_store
    location = data or default_location()
    if isinstance(location, Path) and not may_create and _is_missing(location):
        create = f"create it with `dkimctl service client create{data_option(data)}`"
        hint = f"check the name, or {create}" if data else f"{create}, or name one with --data"
        raise UsageError(f"{location}: the service has no such data file", hint=hint)
    # Only the default directory is created: the name of another may have a typo.
    if isinstance(data, Path) and _is_missing(data.parent):
        hint = "create the directory, or name another data file with --data"
        raise UsageError(f"{data}: the directory {data.parent} does not exist", hint=hint)
    return open_key_store(location) if with_keys else open_store(location)


def data_option(data: Location | None) -> str:
    """The option that names the data in a command, after a space."""
    if data is None or isinstance(data, Path):
        return f" --data {shlex.quote(str(data))}" if data else ""
    return f" --database {shlex.quote(data.text)}"  # as it was typed, so without a password


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except OSError as error:  # any other is reported when it is opened
        return isinstance(error, (FileNotFoundError, NotADirectoryError))
    return False


class Sandbox:
    """The service in this process, with its own data file and one client."""

    def __init__(self) -> None:
        import logging

        with needs_service_extra():
            from dkimctl.service import app, clients, database
        self._clients = clients
        self._store = store = database.open_key_store(sandbox_data())

        def has_client() -> bool:
            return SANDBOX_CLIENT_ID in {client.client_id for client in clients.list_clients(store)}

        # Failures show in the answers; without a handler Python would print them as well.
        logging.getLogger("dkimctl.service").addHandler(logging.NullHandler())
        try:
            if not has_client():
                clients.create_client(store, SANDBOX_CLIENT_ID)
        except UsageError:
            if not has_client():  # otherwise another process has created it first
                raise
        self.app = app.create_app(store)

    def issue_token(self) -> Token:
        """Issue a token directly; the secret of the sandbox's client is not stored anywhere."""
        now = time.time()
        text = self._clients.issue_token(self._store, SANDBOX_CLIENT_ID, now)
        return Token(Secret(text), now + self._clients.TOKEN_LIFETIME, now)

    def close(self) -> None:
        self._store.close()
