"""Credentials in the keyring of the operating system."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from dkimctl.credentials.account import Account
from dkimctl.credentials.store import WAYS_OUT, CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret

_T = TypeVar("_T")

_UNAVAILABLE = ("the keyring cannot be opened", f"see that its service runs; or {WAYS_OUT}")
_LOCKED = ("the keyring is locked", f"unlock it and run this again; or {WAYS_OUT}")
# By name, so that telling them apart imports no part of keyring: what happened, what to do.
_FAULTS = {
    "NoKeyringError": ("this machine has no keyring", WAYS_OUT),
    "InitError": _UNAVAILABLE,
    "SecretServiceNotAvailableException": _UNAVAILABLE,
    "KeyringLocked": _LOCKED,
    "LockedException": _LOCKED,
    "PasswordSetError": (
        "the keyring refused what it was to keep",
        f"see that it is unlocked and can be written to; or {WAYS_OUT}",
    ),
    "PasswordDeleteError": (
        "the keyring refused to delete an entry",
        "see that it is unlocked and run this again; or delete it in the keyring's own program",
    ),
}
_NOTE = "waiting for the keyring, which may be asking you to unlock it"


class Backend(Protocol):
    """What is used of a backend of the `keyring` library."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class KeyringStore(CredentialStore):
    """Keeps credentials in `backend`, by default the keyring that the system offers.

    No call takes longer than `seconds`: a keyring that waits to be unlocked would hang a
    script for minutes. One that did not answer in time is not asked again. Where a call may
    take longer than `patience` seconds and does, `notify` is told so, once.
    """

    def __init__(
        self,
        backend: Backend | None = None,
        *,
        seconds: float = 3,
        patience: float = 3,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._backend = backend
        self._seconds = seconds
        self._patience = patience
        self._notify = notify
        self._has_notified = False
        self._is_hung = False

    @property
    def name(self) -> str:
        try:
            return f"keyring ({self._call(_backend_name)})"
        except CredentialsError:
            return "keyring (not available)"

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        entry = entry_name(account, kind)
        return self._call(lambda backend: _checked(backend.get_password(entry, account.client_id)))

    def _write(self, account: Account, kind: Kind, text: Secret) -> None:
        entry = entry_name(account, kind)
        self._call(lambda backend: backend.set_password(entry, account.client_id, text.reveal()))

    def _remove(self, account: Account, kind: Kind) -> None:
        # Backends disagree on how deleting what is absent fails, and not all tell of a failure.
        with suppress(CredentialsError):  # what cannot be read may be deleted all the same
            if self._read(account, kind) is None:
                return
        entry = entry_name(account, kind)
        try:
            self._call(lambda backend: backend.delete_password(entry, account.client_id))
        except CredentialsError as error:
            fault = error
        else:
            fault = _fault("PasswordDeleteError")
        if self._read(account, kind) is not None:
            raise fault

    def _call(self, operation: Callable[[Backend], _T]) -> _T:
        """What `operation` returns. Raises CredentialsError, with nothing of the cause in it."""
        results: list[_T] = []
        faults: list[CredentialsError] = []

        def work() -> None:
            try:
                results.append(operation(self._resolved()))
            except BaseException as error:  # noqa: BLE001 - backends raise anything
                faults.append(_fault(type(error).__name__))

        if not self._is_hung:
            # A daemon: a call that hangs does not delay the exit.
            thread = threading.Thread(target=work, name="keyring", daemon=True)
            thread.start()
            self._await(thread)
        if results:
            return results[0]
        raise faults[0] if faults else self._silence()

    def _await(self, thread: threading.Thread) -> None:
        """Wait for `thread` to end, for as long as a call may take."""
        thread.join(min(self._patience, self._seconds))
        if thread.is_alive() and self._seconds > self._patience:
            if not self._has_notified:
                self._has_notified = True
                self._notify(_NOTE)
            thread.join(self._seconds - self._patience)
        self._is_hung = thread.is_alive()

    def _silence(self) -> CredentialsError:
        return CredentialsError(
            f"the keyring did not answer within {self._seconds:g} s",
            hint=f"it may be waiting to be unlocked: unlock it and run this again; or {WAYS_OUT}",
        )

    def _resolved(self) -> Backend:
        if self._backend is None:
            import keyring

            self._backend = keyring.get_keyring()
        return self._backend


def _checked(kept: object) -> Secret | None:
    """Raises TypeError for what is no text, as some backends give it."""
    if kept is None:
        return None
    if not isinstance(kept, str):
        raise TypeError
    return Secret(kept)


def _backend_name(backend: Backend) -> str:
    """What people call it; of a chain of backends, each of them."""
    links = getattr(backend, "backends", None) or [backend]
    return ", ".join(str(getattr(link, "name", type(link).__name__)) for link in links)


def _fault(kind: str) -> CredentialsError:
    """Plain words for an error of the class `kind`; its own may hold the secret."""
    message, hint = _FAULTS.get(kind, (f"the keyring failed ({kind})", WAYS_OUT))
    return CredentialsError(message, hint=hint)
