"""`dkimctl login`: verify the client ID and secret once, and store them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.interruption import interrupting
from dkimctl.cli.options.shared import examples, with_session
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, ExitCode, UsageError
from dkimctl.models.secret import Secret, Token
from dkimctl.settings.logins import LOGIN_KEYS, login_of, logins_lock, read_logins, write_logins
from dkimctl.settings.profile import profiles_with

app = typer.Typer(add_completion=False)

_OVERRIDING = (
    "DKIMCTL_AUTH_URL",
    "DKIMCTL_BASE_URL",
    "DKIMCTL_CLIENT_ID",
    "DKIMCTL_CLIENT_SECRET",
    "DKIMCTL_ACCESS_TOKEN",
)
_QUESTIONS = {
    "auth_url": "Authorization URL (https://…)",
    "base_url": "Service URL (https://…)",
    "client_id": "Client ID",
}


@app.command(
    epilog=examples(
        "dkimctl login --auth-url https://auth.example --base-url https://api.example",
        "dkimctl login --profile agency --client-id ID --secret-stdin < secret.txt",
        "dkimctl login --credential-store file",
    )
)
@with_session
def login(
    session: Session,
    secret_stdin: Annotated[
        bool, typer.Option("--secret-stdin", help="Read the client secret from standard input.")
    ] = False,
) -> int:
    """Log in: verify a client ID and secret, and store them.

    Prompts for missing values. The secret is never taken from the command line.
    """
    _refuse_environment()
    _ask_for_missing(session)
    _refuse_config(session)
    account, store = session.account, session.credential_store
    store.has_secret(account)  # reports an unusable store before the secret is typed
    secret = prompt.read_client_secret(from_stdin=secret_stdin)
    token = session.client.issue_token(account.client_id, secret)
    with interrupting(), logins_lock(session.state_dir):
        _store(session, secret, token)
    session.reporter.note(
        f"dkimctl: logged in as {account.client_id} at {account.base_url} "
        f"(profile {session.profile.name}); the secret is in the {store.name}"
    )
    return ExitCode.OK


def _refuse_environment() -> None:
    """Variables would override what is stored."""
    overriding = [name for name in _OVERRIDING if os.environ.get(name)]
    if overriding:
        raise UsageError(
            f"the environment sets {', '.join(overriding)}, which would override the login",
            hint=f"unset {' '.join(overriding)}, or use these variables instead of logging in",
        )


def _ask_for_missing(session: Session) -> None:
    for key, question in _QUESTIONS.items():
        if getattr(session.resolve_profile(may_be_new=True), key) is not None:
            continue
        if not prompt.is_interactive():
            option = key.replace("_", "-")
            raise UsageError(
                f"{key} is not set, and there is no terminal to ask for it",
                hint=f"give --{option}, or set DKIMCTL_{key.upper()} and the other variables "
                "instead of logging in",
            )
        session.set_flag(key, prompt.ask(question))


def _refuse_config(session: Session) -> None:
    """Other values in the config file would override what is stored."""
    profile = session.profile
    if profile.is_sandbox:
        raise UsageError("the sandbox needs no login", hint="dkimctl register --sandbox FILE")
    for key, value in session.config.profiles.get(profile.name, {}).items():
        if key in LOGIN_KEYS and value != getattr(profile, key):
            raise UsageError(
                f"the config file has another {key} for the profile {profile.name}, "
                "which would override the login",
                hint="change it there, or log in with another --profile",
            )


def _store(session: Session, secret: Secret, token: Token) -> None:
    """Store the secret, and the login by which `logout` finds it: both or neither.

    If the account already had a secret, the new one, which is verified, stays in any case.
    """
    account, store, profile = session.account, session.credential_store, session.profile
    previous = read_logins(session.state_dir)
    had_secret = store.has_secret(account)
    try:
        store.set_secret(account, secret)
        if not store.set_token(account, token):
            session.reporter.warn(
                f"{store.name} cannot hold the token; each command will get its own"
            )
        logins = previous | {profile.name: login_of(profile)}
        write_logins(session.state_dir, logins)
    except BaseException:
        if not had_secret:
            with suppress(CredentialsError):
                store.delete(account)
        raise
    _delete_unused(session, previous.get(profile.name), logins)


def _delete_unused(
    session: Session, login: Mapping[str, str] | None, logins: Mapping[str, Mapping[str, str]]
) -> None:
    """Delete the credentials of a profile's previous login unless a profile still uses them."""
    if login is None or profiles_with(login, session.config, logins):
        return
    try:
        session.delete_credentials(login)
    except CredentialsError as error:
        session.reporter.warn(
            f"the secret of the previous login is still stored: {error.message}",
            hint=f"delete the entry of {login['client_id']} in the {login['credential_store']}",
        )
