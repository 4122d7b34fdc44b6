"""The keyring of the operating system: credentials, and secrets that the config file names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from dkimctl.credentials.store import ALTERNATIVES, Account, CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError, ThreadLimitError
from dkimctl.models import Secret
from dkimctl.threads import start_daemon

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

_T = TypeVar("_T")

# By the name of the exception's class, because importing the classes is slow.
_EXPLANATIONS = {
    "NoKeyringError": "this machine has no keyring",
    "InitError": "the keyring cannot be opened",
    "SecretServiceNotAvailableException": "the keyring cannot be opened",
    "KeyringLocked": "the keyring is locked",
    "LockedException": "the keyring is locked",
    "PasswordSetError": "the keyring refused to store an entry",
    "PasswordDeleteError": "the keyring refused to delete an entry",
}
_HINT = f"check that its service is running, and unlock it; or {ALTERNATIVES}"
KEYRING_SERVICE = "dkimctl-dns"  # of the entries that the config file names
_PATIENCE = 3.0  # seconds until the user is notified


class KeyringStore(CredentialStore):
    """Stores credentials in `backend`, by default the system's keyring.

    No call takes longer than `seconds`: a keyring that waits to be unlocked would block a script
    for minutes. After a call that timed out, all others fail at once. `notify` is called, once,
    if a call takes long.
    """

    def __init__(
        self,
        backend: KeyringBackend | None = None,
        *,
        seconds: float = 3,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._backend = backend
        self._seconds = seconds
        self._notify = notify
        self._is_hung = False

    @property
    def name(self) -> str:
        try:
            return self._call(_describe)[0]
        except CredentialsError:
            return "keyring (not available)"

    @property
    def is_plaintext_keyring(self) -> bool:
        return self._call(_describe)[1]

    @property
    def is_there(self) -> bool:
        """Whether there is a keyring that encrypts; it may be locked, and is not opened."""
        with suppress(CredentialsError):
            # Of keyring's own backends for machines that have none, 0 or less.
            return self._call(lambda each: each.priority > 0) and not self.is_plaintext_keyring
        return False

    def read_entry(self, service: str, name: str) -> Secret | None:
        """An entry that anything may have stored, or None. Raises CredentialsError."""

        def read(backend: KeyringBackend) -> Secret | None:
            text = backend.get_password(service, name)
            if text is not None and not isinstance(text, str):
                raise TypeError  # some backends return bytes
            return None if text is None else Secret(text)

        return self._call(read)

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self.read_entry(entry_name(account, kind), account.client_id)

    def _write(self, account: Account, kind: Kind, text: Secret | None) -> None:
        entry = entry_name(account, kind), account.client_id
        if text is not None:
            self._call(lambda backend: backend.set_password(*entry, text.reveal()))
            return
        # Backends report the deletion of an absent entry differently, and some report no failure.
        with suppress(CredentialsError):  # an entry that cannot be read can still be deleted
            if self._read(account, kind) is None:
                return
        try:
            self._call(lambda backend: backend.delete_password(*entry))
        except CredentialsError as error:
            failure = error
        else:
            failure = _explain("PasswordDeleteError")
        if self._read(account, kind) is not None:
            raise failure

    def _call(self, operation: Callable[[KeyringBackend], _T]) -> _T:
        """What `operation` returns. Raises CredentialsError, which does not contain the cause."""
        outcome: list[_T | CredentialsError] = []

        def run() -> None:
            try:
                if self._backend is None:
                    import keyring

                    self._backend = keyring.get_keyring()
                outcome.append(operation(self._backend))
            except BaseException as error:  # noqa: BLE001 - backends raise anything
                outcome.append(_explain(type(error).__name__))

        if not self._is_hung:
            # A daemon thread, so that a call that hangs does not delay the exit.
            thread = start_daemon(run, "keyring")
            if thread is None:
                limit = ThreadLimitError()
                message = f"the keyring cannot be asked: {limit.message}"
                raise CredentialsError(message, hint=limit.hint)
            try:
                thread.join(min(_PATIENCE, self._seconds))
                if thread.is_alive() and self._seconds > _PATIENCE:
                    notify, self._notify = self._notify, lambda _text: None
                    notify("waiting for the keyring, which may be asking you to unlock it")
                    thread.join(self._seconds - _PATIENCE)
            finally:  # also after Ctrl-C, since the call may still take effect
                self._is_hung = thread.is_alive()
        if outcome:
            if isinstance(outcome[0], CredentialsError):
                raise outcome[0]
            return outcome[0]
        message = f"the keyring did not answer within {self._seconds:g} s"
        raise CredentialsError(message, hint=_HINT)


class ReferencedSecrets:
    """Reads `env/NAME` from `environ`, and `keyring/NAME` from the `keyring`, when asked."""

    def __init__(self, environ: Mapping[str, str], keyring: KeyringStore) -> None:
        self._environ = environ
        self._keyring = keyring

    def read(self, reference: str) -> Secret:
        """The secret. Raises CredentialsError if it is missing or empty, or cannot be read."""
        store, _, name = reference.partition("/")
        if store == "env":
            if text := self._environ.get(name):
                return Secret(text)
            raise CredentialsError(
                f"the environment variable {name} is not set, or empty",
                hint=f"set it: the config file names it, as {reference}",
            )
        alternative = f"or write env/NAME instead of {reference} in the config file"
        try:
            secret = self._keyring.read_entry(KEYRING_SERVICE, name)
        except CredentialsError as error:
            message = f"cannot read {reference}: {error.message}"
            hint = f"check that the keyring is there and unlocked, {alternative}"
            raise CredentialsError(message, hint=hint) from None
        if secret is None or not secret.reveal():
            raise CredentialsError(
                f"the keyring has no entry {name} of the service {KEYRING_SERVICE}",
                hint=f"run `keyring set {KEYRING_SERVICE} {name}`, {alternative}",
            )
        return secret


def _describe(backend: KeyringBackend) -> tuple[str, bool]:
    """Its name for people, and whether it is a PlaintextKeyring, such as that of keyrings.alt.

    A chain of backends has all their names, and is one if any of them is.
    """
    parts = getattr(backend, "backends", None) or [backend]
    classes = [base.__name__.lower() for part in parts for base in type(part).__mro__]
    is_plaintext = any("plaintext" in name for name in classes)
    names = ", ".join(str(getattr(part, "name", type(part).__name__)) for part in parts)
    return f"{'plain-text ' if is_plaintext else ''}keyring ({names})", is_plaintext


def _explain(exception: str) -> CredentialsError:
    """An error for the class named `exception`, whose own text may contain the secret."""
    message = _EXPLANATIONS.get(exception, f"the keyring failed ({exception})")
    return CredentialsError(message, hint=ALTERNATIVES if exception == "NoKeyringError" else _HINT)
