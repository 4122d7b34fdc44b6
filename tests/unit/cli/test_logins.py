"""What a logout deletes, and what it keeps for the next one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkimctl.cli.logins import delete_login
from dkimctl.errors import CredentialsError, UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.profile import read_logins, write_logins

LOGIN = {
    "auth_url": "https://auth.example", "base_url": "https://api.example", "client_id": "me",
    "credential_store": "keyring",
}  # fmt: skip


@pytest.fixture
def session(tmp_path):
    """A session whose credential store works while `deleted` is a list."""
    tmp_path.chmod(0o700)

    def delete(login):
        if session.deleted is None:
            raise CredentialsError("the keyring is locked", hint="unlock it")
        session.deleted.append(login)

    session = SimpleNamespace(
        state_dir=tmp_path, config=Config(), deleted=[], delete_credentials=delete,
        has_credentials=lambda login: True,
    )  # fmt: skip
    return session


def test_a_login_that_another_profile_uses_by_now_is_not_deleted(session):
    write_logins(session.state_dir, {"a": LOGIN, "b": LOGIN})
    with pytest.raises(UsageError, match="another profile uses the login now"):
        delete_login(session, "a")
    assert session.deleted == []
    assert delete_login(session, "a", with_others=["b"]) == (True, ["b"])
    assert session.deleted == [LOGIN]


def test_a_secret_that_could_not_be_deleted_is_deleted_the_next_time(session):
    write_logins(session.state_dir, {}, [LOGIN])
    session.deleted = None
    with pytest.raises(CredentialsError, match="the secret of me may still be stored") as caught:
        delete_login(session, "default")
    assert caught.value.hint.startswith("check that the keyring can be used")
    assert read_logins(session.state_dir) == ({}, [LOGIN])
    session.deleted = []
    assert delete_login(session, "default") == (False, [])
    assert (session.deleted, read_logins(session.state_dir)) == ([LOGIN], ({}, []))
