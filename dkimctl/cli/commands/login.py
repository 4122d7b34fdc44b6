"""`dkimctl login` and `logout`: a client ID and secret are verified and stored, or deleted."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dkimctl.cli import next_steps, terminal
from dkimctl.cli.options import ACCOUNT, CONNECTION, App, YesOption, examples
from dkimctl.cli.session import Session, open_session
from dkimctl.cli.terminal import stopping
from dkimctl.errors import (
    CredentialsError,
    DkimctlError,
    ExitCode,
    ServiceError,
    TokenRejected,
    UsageError,
)
from dkimctl.models import Secret, Token
from dkimctl.settings.profile import (
    LOGIN_KEYS,
    login_of,
    logins_lock,
    option,
    profiles_with,
    read_logins,
    read_unused_logins,
    read_used_profile,
    stored_settings,
    variable,
    write_logins,
    write_used_profile,
)
from dkimctl.settings.values import CHECKS

if TYPE_CHECKING:
    from dkimctl.client.http import HttpResponse
    from dkimctl.models import Token

app = App()

_EXPORTED_SECRETS = ("DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN")
# By key: what it is called, and an example.
QUESTIONS = {
    "auth_url": ("Auth URL", "https://auth.example.com"),
    "base_url": ("Base URL", "https://api.example.com"),
    "client_id": ("Client ID", "0a1b2c3d"),
}
# A GET changes nothing (RFC 9110 section 9.2.1). Of this path only POST is specified (interface
# 4.2), so any answer will do that does not say that there is nothing.
TEST_PATH = "/domain/dkim"
_HTML = (b"<!doctype", b"<html", b"<head", b"<body")
Login: TypeAlias = Mapping[str, str]


@app.command(
    epilog=examples(
        "dkimctl login --auth-url https://auth.example --base-url https://api.example",
        "dkimctl login --profile agency --client-id ID --secret-stdin < secret.txt",
        "dkimctl login --credential-store file",
    ),
    shows=(*ACCOUNT, *CONNECTION),
)
def login(
    ctx: typer.Context,
    secret_stdin: Annotated[
        bool, typer.Option("--secret-stdin", help="Read the client secret from standard input.")
    ] = False,
    allow_plaintext_keyring: Annotated[
        bool,
        typer.Option(
            "--allow-plaintext-keyring", help="Store the secret even in an unencrypted keyring."
        ),
    ] = False,
) -> int:
    """Log in: verify a client ID and secret, and store them.

    Takes URLs and client ID from options, the environment and the config file, and prompts for
    the rest. The secret is never taken from the command line. Both URLs are tried; nothing is
    registered.
    """
    session = open_session(ctx)
    # Later commands would use these instead of what is stored.
    if exported := [name for name in _EXPORTED_SECRETS if os.environ.get(name)]:
        raise UsageError(
            f"the environment sets {' and '.join(exported)}, which every command uses instead of "
            "a login",
            hint=f"to log in, first run `unset {' '.join(exported)}`",
        )
    with terminal.interruptible("nothing was stored"):
        for key, (label, example) in QUESTIONS.items():
            if getattr(session.resolve_settings(may_be_new=True).profile, key) is None:
                session.flags[key] = _ask(session, key, label, example)
        # Other values in the config file would override what is stored.
        profile = session.profile
        if profile.is_sandbox:
            raise UsageError(
                "the sandbox needs no login", hint="run `dkimctl register --sandbox FILE`"
            )
        for key, value in session.config.profiles.get(profile.name, {}).items():
            if key in LOGIN_KEYS and value != getattr(profile, key):
                raise UsageError(
                    f"the config file has another {key} for the profile {profile.name}, "
                    "which would override the login",
                    hint="change it there, or log in with another --profile",
                )
        account, store = session.account, session.credential_store
        store.has_secret(account)  # reports an unusable store before the secret is typed
        # Later commands need no permission: they store tokens only where the secret is.
        if not allow_plaintext_keyring and store.is_plaintext_keyring:
            raise CredentialsError(
                f"the {store.name} does not encrypt what it stores",
                hint="run `dkimctl login --credential-store file` for a file that only you can "
                "read, or `dkimctl login --allow-plaintext-keyring`",
            )
        secret = terminal.read_client_secret(
            from_stdin=secret_stdin,
            complain=lambda error: _complain(session, "Client secret", error),
        )
        try:
            token = session.client.issue_token(account.client_id, secret)
        except ServiceError as error:
            raise _naming_url("auth URL", error) from None
        _require_base_url(session, token)
        store_login(session, secret, token)
    session.reporter.note(
        f"dkimctl: logged in as {account.client_id} at {account.base_url} "
        f"(profile {session.profile.name}); the secret is in the {store.name}"
    )
    file = next_steps.SPEC_FILE if Path(next_steps.SPEC_FILE).exists() else "FILE"
    session.reporter.note(f"dkimctl: next: {next_steps.command('register --dry-run', [file])}")
    return ExitCode.OK


@app.command(
    epilog=examples(
        "dkimctl logout", "dkimctl logout --profile agency", "dkimctl logout --profile agency --yes"
    ),
    shows=(),
)
def logout(ctx: typer.Context, yes: YesOption = False) -> int:
    """Log out: delete the secret and token of a profile.

    Its URLs, client ID and ledger stay. If other profiles use the same login, asks first.
    """
    session = open_session(ctx)
    if session.profile.is_sandbox:
        raise UsageError("the sandbox has no login", hint="name another --profile")
    name = session.profile.name
    login = login_to_delete(session, name, session.logins)
    others = others_with(session, name, login, session.logins) if login else []
    if login and others:
        with suppress(CredentialsError):  # then there may be a secret
            others = others if session.has_credentials(login) else []
    if others and not yes:
        what = f"logging out of {name} also logs out {', '.join(others)}: they use the same login"
        question = f"{what[:1].upper()}{what[1:]}. Go on?"
        refusal = UsageError(what, hint="add --yes to log out of all of them")
        if not terminal.confirms(question, refusal=refusal):
            session.reporter.note("dkimctl: nothing was deleted")
            return ExitCode.NO
    if not delete_login(session, name, with_others=others):
        session.reporter.note(f"dkimctl: the profile {name} is not logged in")
        return ExitCode.OK
    session.reporter.note(f"dkimctl: logged out of the profile {name}")
    if others:
        session.reporter.note(f"dkimctl: and of {', '.join(others)}, which used the same login")
    return ExitCode.OK


def _ask(session: Session, key: str, label: str, example: str) -> str:
    name = option(key).name
    if not terminal.is_interactive():
        raise UsageError(
            f"{key} is not set, and there is no terminal to ask for it",
            hint=f"give {name}, or set {variable(key).name}",
        )
    try:
        return terminal.ask(
            f"{label} (such as {example})",
            CHECKS[key],
            lambda error: _complain(session, label, error),
        )
    except UsageError as error:
        raise UsageError(
            f"{label}: {error.message}", hint=f"give it as an option: {name} {example}"
        ) from None


def _complain(session: Session, label: str, error: DkimctlError) -> None:
    session.reporter.warn(f"{label}: {error.message}", hint=error.hint)


def _require_base_url(session: Session, token: Token) -> None:
    """Raise ServiceError if the base URL does not answer; warn if it may be another's.

    A refused token is not an error: that of a disabled client is (interface 3.2).
    """
    warn, url = session.reporter.warn, session.account.base_url
    try:
        response = session.client.request(token.access_token, "GET", TEST_PATH)
    except TokenRejected as error:
        warn(f"base URL: {error.message}", hint=error.hint, code=error.code)
        return
    except ServiceError as error:
        raise _naming_url("base URL", error) from None
    if response.status >= 500:
        warn(
            f"base URL: {url} answered {response.status} to a test request",
            hint="try a command later, and check --base-url if it persists",
        )
    elif strange := strange_answer(response):
        warn(
            f"base URL: {url} answered {strange} to a test request, as if it were not the service",
            hint="check the URL; if it is wrong, run `dkimctl login --base-url URL` again",
        )


def strange_answer(response: HttpResponse) -> str:
    """What the service does not answer to a GET of TEST_PATH, or "" if it may be the service."""
    status = response.status
    is_page = response.body.lstrip().lower().startswith(_HTML)
    if is_page and status != 405:  # what the service says to this method, whatever its body
        return f"{status} with a web page"
    return str(status) if 300 <= status < 400 or status in (404, 410) else ""


def _naming_url(name: str, error: ServiceError) -> ServiceError:
    """The error with the name of the URL whose host failed."""
    message = f"{name}: {error.message}; nothing was stored"
    return type(error)(message, hint=error.hint, retry_after=error.retry_after)


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
