"""`dkimctl login`: prove the client credentials once, and keep them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.interruption import interrupting
from dkimctl.cli.options import examples, with_session
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
    """Prove a client ID and secret by obtaining a token, and keep them for later commands.

    What is missing is asked for. The secret is never taken from the command line.
    """
    _refuse_environment()
    _complete(session)
    _refuse_config(session)
    account, store = session.account, session.credential_store
    store.has_secret(account)  # what cannot be used says so before anybody types a secret
    secret = _secret(from_stdin=secret_stdin)
    token = session.client.issue_token(account.client_id, secret)
    with interrupting(), logins_lock(session.state_dir):
        _keep(session, secret, token)
    session.reporter.note(
        f"dkimctl: logged in as {account.client_id} at {account.base_url} "
        f"(profile {session.profile.name}); the secret is in the {store.name}"
    )
    return ExitCode.OK


def _refuse_environment() -> None:
    """What the environment holds would win over what is stored."""
    found = [name for name in _OVERRIDING if os.environ.get(name)]
    if found:
        raise UsageError(
            f"the environment sets {', '.join(found)}, which would override what login stores",
            hint=f"unset {' '.join(found)}, or do without a login: every command takes them",
        )


def _complete(session: Session) -> None:
    """Ask for what neither options nor settings tell."""
    for key, question in _QUESTIONS.items():
        if getattr(session.resolve_profile(may_be_new=True), key) is not None:
            continue
        if not prompt.is_interactive():
            option = key.replace("_", "-")
            raise UsageError(
                f"nothing says what the {key} is, and there is no terminal to ask on",
                hint=f"give --{option}, or do without a login: DKIMCTL_{key.upper()} and the rest "
                "in the environment",
            )
        session.set_flag(key, prompt.ask(question))


def _refuse_config(session: Session) -> None:
    """What the config file says otherwise would win over what is stored."""
    profile = session.profile
    if profile.is_sandbox:
        raise UsageError("the sandbox needs no login", hint="dkimctl register --sandbox FILE")
    for key, value in session.config.profiles.get(profile.name, {}).items():
        if key in LOGIN_KEYS and value != getattr(profile, key):
            raise UsageError(
                f"the config file has another {key} for the profile {profile.name}, "
                "which would override what login stores",
                hint="change it there, or log in with another --profile",
            )


def _keep(session: Session, secret: Secret, token: Token) -> None:
    """Keep the secret, and the login that lets `logout` find it: both, or neither.

    Where the account had a secret before, the new one, which is proven, stays in any case.
    """
    account, store, profile = session.account, session.credential_store, session.profile
    before = read_logins(session.state_dir)
    was_there = store.has_secret(account)
    try:
        store.set_secret(account, secret)
        if not store.set_token(account, token):
            session.reporter.warn(
                f"{store.name} cannot hold the token; each command will get its own"
            )
        after = before | {profile.name: login_of(profile)}
        write_logins(session.state_dir, after)
    except BaseException:
        if not was_there:
            with suppress(CredentialsError):
                store.delete(account)
        raise
    _forget(session, before.get(profile.name), after)


def _forget(
    session: Session, login: Mapping[str, str] | None, logins: Mapping[str, Mapping[str, str]]
) -> None:
    """Let go of the credentials that a profile had, unless one has them still."""
    if login is None or profiles_with(login, session.config, logins):
        return
    try:
        session.forget(login)
    except CredentialsError as error:
        session.reporter.warn(
            f"the secret of the login before is still kept: {error.message}",
            hint=f"delete the entry of {login['client_id']} in the {login['credential_store']}",
        )


def _secret(*, from_stdin: bool) -> Secret:
    from dkimctl.credentials.account import parse_secret

    given = prompt.read_secret() if from_stdin else prompt.ask_secret("Client secret")
    secret = parse_secret(given, "the secret")
    if secret is None:
        raise CredentialsError("the secret is empty", hint="give the secret key of the client ID")
    return secret
