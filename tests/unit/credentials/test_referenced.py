"""The secrets that the config file names are read from where it says, when they are needed."""

from __future__ import annotations

import threading
import time

import pytest
from keyring.backends import fail

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.sources import KEYRING_SERVICE, ReferencedSecrets
from dkimctl.errors import CredentialsError
from dkimctl.settings.values import SecretReference

VARIABLE = SecretReference("env", "DNS_TOKEN")
ENTRY = SecretReference("keyring", "route53")


class HungKeyring:
    """Never answers, like one that waits to be unlocked."""

    def get_password(self, service: str, username: str) -> str | None:
        threading.Event().wait()
        return None


def secrets(environ=None, backend=None, seconds: float = 3) -> ReferencedSecrets:
    return ReferencedSecrets(environ or {}, KeyringStore(backend, seconds=seconds))


def refusal(secrets: ReferencedSecrets, reference: SecretReference) -> CredentialsError:
    with pytest.raises(CredentialsError) as caught:
        secrets.read(reference)
    assert caught.value.hint
    return caught.value


def test_a_variable_is_read_and_the_keyring_left_alone():
    secret = secrets({"DNS_TOKEN": "hunter2"}, fail.Keyring()).read(VARIABLE)
    assert secret.reveal() == "hunter2"


@pytest.mark.parametrize("environ", [{}, {"DNS_TOKEN": ""}])
def test_a_missing_variable_is_named(environ):
    error = refusal(secrets(environ), VARIABLE)
    assert "the environment variable DNS_TOKEN is not set" in error.message


@pytest.mark.parametrize("stored", [None, ""])
def test_a_missing_entry_is_told_how_to_make_it(keyring_backend, stored):
    if stored is not None:
        keyring_backend.set_password(KEYRING_SERVICE, "route53", stored)
    error = refusal(secrets(backend=keyring_backend), ENTRY)
    assert "no entry route53 of the service dkimctl-dns" in error.message
    assert "`keyring set dkimctl-dns route53`" in error.hint


def test_without_a_keyring_the_environment_is_suggested():
    error = refusal(secrets(backend=fail.Keyring()), ENTRY)
    assert error.message == "cannot read keyring/route53: this machine has no keyring"
    assert "env/NAME" in error.hint


def test_a_keyring_that_hangs_is_given_up_and_not_asked_again():
    hung = secrets(backend=HungKeyring(), seconds=0.2)
    start = time.monotonic()
    for _ in range(5):
        assert "did not answer within 0.2 s" in refusal(hung, ENTRY).message
    assert time.monotonic() - start < 0.2 * 4
