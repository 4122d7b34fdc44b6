"""Stores and deletes logins and their secrets, so that `logout` finds every secret there is.

A kill at any moment leaves a login without a secret at worst, never a secret without a login: the
login is written first, and a login that is replaced stays in the file until its secret is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from dkimctl.cli.session import Session
from dkimctl.cli.terminal import stopping
from dkimctl.errors import CredentialsError, UsageError
from dkimctl.models.secret import Secret, Token
from dkimctl.settings.logins import (
    LOGIN_KEYS,
    login_of,
    logins_lock,
    read_logins,
    read_unused_logins,
    read_used_profile,
    write_logins,
    write_used_profile,
)
from dkimctl.settings.profile import profiles_with, stored_settings

Login: TypeAlias = Mapping[str, str]


def store_login(session: Session, secret: Secret, token: Token) -> None:
    """Store the profile's login, secret and token, and delete the secret of its previous login.

    On an error or Ctrl-C, all is as it was before. Raises CredentialsError and UsageError.
    """
    signals: list[None] = []
    # A signal is handled at the end: within a store, it could leave its lock behind.
    with stopping(lambda: signals.append(None)), logins_lock(session.state_dir):
        logins, unused = read_logins(session.state_dir), read_unused_logins(session.state_dir)
        name, login = session.profile.name, login_of(session.profile)
        changed = logins | {name: login}
        replaced = [*unused, logins[name]] if logins.get(name, login) != login else unused
        before = session.credential_store.entries(session.account)
        try:
            write_logins(session.state_dir, changed, replaced)
            store = session.credential_store
            store.set_secret(session.account, secret)
            if not store.set_token(session.account, token):
                text = f"{store.name} cannot hold the token; each command will get its own"
                session.reporter.warn(text)
            if signals:
                raise KeyboardInterrupt
        except BaseException:
            if not session.credential_store.restore(session.account, before):
                unused = [*unused, login]
            with suppress(UsageError):
                write_logins(session.state_dir, logins, unused)
            raise
        for error in _delete_unused(session, changed, replaced):
            session.reporter.warn(error.message, hint=error.hint)


def delete_login(session: Session, name: str, *, with_others: Collection[str] = ()) -> bool:
    """Delete the secret and token of the profile's login, and those of unused logins.

    The login itself stays. False if nothing was stored. Raises UsageError if the login is also
    that of profiles other than `with_others`, CredentialsError if a secret may be left.
    """
    if not session.state_dir.exists():  # the lock would create it
        return False
    with logins_lock(session.state_dir):
        logins, unused = read_logins(session.state_dir), read_unused_logins(session.state_dir)
        login = login_to_delete(session, name, logins)
        was_stored = login is not None and _may_have_credentials(session, login)
        errors = []
        if login is not None:
            if was_stored and {*others_with(session, name, login, logins)} - {*with_others}:
                raise UsageError("another profile uses the login now", hint="run this again")
            errors += _delete(session, login)
        errors += _delete_unused(session, logins, unused)
    if errors:
        raise errors[0]
    return was_stored


def delete_profile(session: Session, name: str) -> tuple[bool, list[str]]:
    """Delete a profile's login, with its secret and token, and its choice by `profile use`.

    Returns whether there was a login, and the names of other profiles with the same one, which
    keep the secret and token. A kill leaves a login without a secret at worst, and a choice of a
    profile that is gone, which is an error until another is chosen. Raises CredentialsError if a
    secret may be left.
    """
    if not session.state_dir.exists():
        return False, []
    with logins_lock(session.state_dir):
        logins, unused = read_logins(session.state_dir), read_unused_logins(session.state_dir)
        login = login_to_delete(session, name, logins)
        others = [] if login is None else others_with(session, name, login, logins)
        own = None if others else login
        existed = name in logins or (own is not None and _may_have_credentials(session, own))
        errors = [] if own is None else _delete(session, own)
        if errors:
            raise errors[0]
        remaining = {key: each for key, each in logins.items() if key != name}
        if remaining != logins:
            write_logins(session.state_dir, remaining, unused)
        errors = _delete_unused(session, remaining, unused)
        if read_used_profile(session.state_dir) == name:
            write_used_profile(session.state_dir, None)
    if errors:
        raise errors[0]
    return existed, others


def login_to_delete(session: Session, name: str, logins: Mapping[str, Login]) -> Login | None:
    """The login of a profile: its own or, if it has none, what its config file says."""
    settings = logins.get(name) or stored_settings(name, session.config, logins)
    if not all(settings.get(key) for key in LOGIN_KEYS):
        return None
    return {key: settings[key] for key in LOGIN_KEYS}


def others_with(
    session: Session, name: str, login: Login, logins: Mapping[str, Login]
) -> list[str]:
    """The other profiles that use the credentials of `login`."""
    return [other for other in profiles_with(login, session.config, logins) if other != name]


def _may_have_credentials(session: Session, login: Login) -> bool:
    try:
        return session.has_credentials(login)
    except CredentialsError:
        return True


def _delete_unused(
    session: Session, logins: Mapping[str, Login], unused: Sequence[Login]
) -> list[CredentialsError]:
    """Delete the secrets of `unused` logins but those that a profile uses again."""
    errors, kept = [], []
    for login in unused:
        if not profiles_with(login, session.config, logins) and (failed := _delete(session, login)):
            errors += failed
            kept.append(login)
    if unused:
        write_logins(session.state_dir, logins, kept)
    return errors


def _delete(session: Session, login: Login) -> list[CredentialsError]:
    """Delete the secret and token of a login; returns what went wrong."""
    try:
        session.delete_credentials(login)
    except CredentialsError as error:
        # A keyring's own hint is about other ways to store a secret.
        is_file = login["credential_store"] == "file"
        first_step = error.hint if is_file else "check that the keyring can be used"
        return [
            CredentialsError(
                f"the secret of {login['client_id']} may still be stored: {error.message}",
                hint=f"{first_step}, and run `dkimctl logout`",
            )
        ]
    return []
