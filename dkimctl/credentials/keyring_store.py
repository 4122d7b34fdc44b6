"""Credentials in the keyring of the operating system."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from dkimctl.credentials.account import Account
from dkimctl.credentials.store import WAYS_OUT, CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError

_T = TypeVar("_T")

# By name, so that telling them apart imports no part of keyring.
_FAULTS = {
    "NoKeyringError": "this machine has no keyring",
    "InitError": "the keyring cannot be opened",
    "KeyringLocked": "the keyring is locked",
}


class Backend(Protocol):
    """What is used of a backend of the `keyring` library."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class KeyringStore(CredentialStore):
    """Keeps credentials in `backend`, by default the keyring that the system offers.

    No call takes longer than `seconds`: a keyring that waits to be unlocked would hang a
    script for minutes.
    """

    def __init__(self, backend: Backend | None = None, *, seconds: float = 3) -> None:
        self._backend = backend
        self._seconds = seconds

    @property
    def name(self) -> str:
        try:
            return f"keyring ({self._call(_backend_name)})"
        except CredentialsError:
            return "keyring (not available)"

    def _read(self, account: Account, kind: Kind) -> str | None:
        entry = entry_name(account, kind)
        return self._call(lambda backend: backend.get_password(entry, account.client_id))

    def _write(self, account: Account, kind: Kind, text: str) -> None:
        entry = entry_name(account, kind)
        self._call(lambda backend: backend.set_password(entry, account.client_id, text))

    def _remove(self, account: Account, kind: Kind) -> None:
        # Backends disagree on how deleting what is absent fails.
        if self._read(account, kind) is not None:
            entry = entry_name(account, kind)
            self._call(lambda backend: backend.delete_password(entry, account.client_id))

    def _call(self, operation: Callable[[Backend], _T]) -> _T:
        """What `operation` returns. Raises CredentialsError, with nothing of the cause in it."""
        results: list[_T] = []
        faults: list[str] = []

        def work() -> None:
            try:
                results.append(operation(self._resolved()))
            except BaseException as error:  # noqa: BLE001 - backends raise anything
                faults.append(_fault(error))

        thread = threading.Thread(target=work, name="keyring", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if results:
            return results[0]
        faults.append(f"the keyring did not answer within {self._seconds:g} s")
        raise CredentialsError(faults[0], hint=WAYS_OUT)

    def _resolved(self) -> Backend:
        if self._backend is None:
            import keyring

            self._backend = keyring.get_keyring()
        return self._backend


def _backend_name(backend: Backend) -> str:
    return str(getattr(backend, "name", type(backend).__name__))


def _fault(error: BaseException) -> str:
    """Plain words for `error` that quote nothing of it: it may hold the secret."""
    kind = type(error).__name__
    return _FAULTS.get(kind, f"the keyring failed ({kind})")
