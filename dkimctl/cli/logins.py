"""The logins of profiles: how they are asked for, stored with their secrets, and deleted."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from dkimctl.cli import terminal
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, UsageError, naming
from dkimctl.models import Secret, Token
from dkimctl.settings import profile as profiles
from dkimctl.settings.profile import Login, Logins
from dkimctl.settings.values import Check

# What an account consists of, by key, with an example.
QUESTIONS = {
    "auth_url": "Auth URL (such as https://auth.example.com)",
    "base_url": "Base URL (such as https://api.example.com)",
    "client_id": "Client ID (such as 0a1b2c3d)",
}


def answer(
    session: Session, label: str, name: str, check: Check, given: str | None, default: str = ""
) -> Any:
    """The value of what is given, or of an answer; the option `name` gives it. Raises UsageError.

    `check` converts a valid answer. Without a terminal, the `default` is the answer.
    """
    if given is None and not terminal.is_interactive():
        if not default:
            raise no_terminal([name])
        given = default
    if given is not None:
        with naming(name):
            return check(given)
    return terminal.ask(label, check, name, session.reporter.warn, default=default)


def no_terminal(options: Sequence[str]) -> UsageError:
    """The error for questions that these options would have answered."""
    words = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    text = f"there is no terminal to ask on, and no {words}"
    return UsageError(text, hint=f"give {words}, or run it on a terminal")


def store_login(session: Session, secret: Secret, token: Token) -> None:
    """Store the profile's login, secret and token, and delete the secret of its previous login.

    On an error or Ctrl-C, all is as it was before. Raises CredentialsError and UsageError.
    """
    signals: list[None] = []
    directory, store, account = session.state_dir, session.credential_store, session.account
    # A signal is handled at the end: within a store, it could leave its lock behind.
    with terminal.stopping(lambda: signals.append(None)), profiles.logins_lock(directory):
        logins, unused = profiles.read_logins(directory)
        name, login = session.profile.name, profiles.login_of(session.profile)
        changed = logins | {name: login}
        replaced = [*unused, logins[name]] if logins.get(name, login) != login else unused
        before = store.entries(account)
        try:
            profiles.write_logins(directory, changed, replaced)
            store.set_secret(account, secret)
            if not store.set_token(account, token):
                text = f"{store.name} cannot hold the token; each command will get its own"
                session.reporter.warn(text)
            if signals:
                raise KeyboardInterrupt
        except BaseException:
            if not store.restore(account, before):
                unused = [*unused, login]
            with suppress(UsageError):
                profiles.write_logins(directory, logins, unused)
            raise
        for error in _delete_unused(session, changed, replaced):
            session.reporter.warn(error.message, hint=error.hint)


def delete_login(
    session: Session, name: str, *, with_others: Collection[str] = (), and_profile: bool = False
) -> tuple[bool, list[str]]:
    """Delete the secret and token of a profile's login, and those of unused logins.

    The login itself goes only with the profile, as does its choice by `profile use`. If other
    profiles have the same login, the secret stays with `and_profile`, else they must be among
    `with_others`. Returns whether there was anything to delete, and those other profiles.

    A kill leaves a login without a secret at worst, and a choice of a profile that is gone, which
    is an error until another is chosen. Raises CredentialsError if a secret may be left, and
    UsageError.
    """
    directory, existed = session.state_dir, False
    if not directory.exists():  # the lock would create it
        return False, []
    with profiles.logins_lock(directory):
        logins, unused = profiles.read_logins(directory)
        login, others = find_login(session, name, logins)
        if login is not None and not (and_profile and others):
            try:
                existed = session.has_credentials(login)
            except CredentialsError:
                existed = True
            if existed and {*others} - {*with_others}:
                raise UsageError("another profile uses the login now", hint="run this again")
            _delete(session, login)
        if and_profile and logins.pop(name, None) is not None:
            existed = True
            profiles.write_logins(directory, logins, unused)
        errors = _delete_unused(session, logins, unused)
        if and_profile and profiles.read_used_profile(directory) == name:
            profiles.write_used_profile(directory, None)
    if errors:
        raise errors[0]
    return existed, others


def find_login(session: Session, name: str, logins: Logins) -> tuple[Login | None, list[str]]:
    """The login of a profile, if any, and the other profiles that use its credentials.

    It is the profile's own or, if it has none, what its config file says.
    """
    settings = logins.get(name) or profiles.stored_settings(name, session.config, logins)
    if not all(settings.get(key) for key in profiles.LOGIN_KEYS):
        return None, []
    login = {key: settings[key] for key in profiles.LOGIN_KEYS}
    others = profiles.profiles_with(login, session.config, logins)
    return login, [other for other in others if other != name]


def _delete_unused(
    session: Session, logins: Logins, unused: Sequence[Login]
) -> list[CredentialsError]:
    """Delete the secrets of `unused` logins but those that a profile uses again."""
    errors, kept = [], []
    for login in unused:
        if profiles.profiles_with(login, session.config, logins):
            continue
        try:
            _delete(session, login)
        except CredentialsError as error:
            errors.append(error)
            kept.append(login)
    if unused:
        profiles.write_logins(session.state_dir, logins, kept)
    return errors


def _delete(session: Session, login: Login) -> None:
    try:
        session.delete_credentials(login)
    except CredentialsError as error:
        # A keyring's own hint is about other ways to store a secret.
        is_file = login["credential_store"] == "file"
        first_step = error.hint if is_file else "check that the keyring can be used"
        text = f"the secret of {login['client_id']} may still be stored: {error.message}"
        raise CredentialsError(text, hint=f"{first_step}, and run `dkimctl logout`") from None
