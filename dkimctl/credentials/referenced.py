"""The secrets that the config file names: of DNS providers, and the URL of a webhook."""

from __future__ import annotations

from collections.abc import Mapping

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret
from dkimctl.settings.values import SecretReference

KEYRING_SERVICE = "dkimctl-dns"


class ReferencedSecrets:
    """Reads `env/NAME` from `environ`, and `keyring/NAME` from the `keyring`, when asked."""

    def __init__(self, environ: Mapping[str, str], keyring: KeyringStore) -> None:
        self._environ = environ
        self._keyring = keyring

    def read(self, reference: SecretReference) -> Secret:
        """The secret. Raises CredentialsError if it is missing or empty, or cannot be read."""
        if reference.store == "env":
            return self._from_environment(reference)
        return self._from_keyring(reference)

    def _from_environment(self, reference: SecretReference) -> Secret:
        if text := self._environ.get(reference.name):
            return Secret(text)
        raise CredentialsError(
            f"the environment variable {reference.name} is not set, or empty",
            hint=f"set it: the config file names it, as {reference}",
        )

    def _from_keyring(self, reference: SecretReference) -> Secret:
        alternative = f"or write env/NAME instead of {reference} in the config file"
        try:
            secret = self._keyring.read_entry(KEYRING_SERVICE, reference.name)
        except CredentialsError as error:
            message = f"cannot read {reference}: {error.message}"
            hint = f"check that the keyring is there and unlocked, {alternative}"
            raise CredentialsError(message, hint=hint) from None
        if secret is None or not secret.reveal():
            raise CredentialsError(
                f"the keyring has no entry {reference.name} of the service {KEYRING_SERVICE}",
                hint=f"run `keyring set {KEYRING_SERVICE} {reference.name}`, {alternative}",
            )
        return secret
