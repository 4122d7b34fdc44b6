"""`dkimctl login`: prove the client credentials once, and keep them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import typer

from dkimctl import settings
from dkimctl.cli import prompt
from dkimctl.cli.options import examples, with_session
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, ExitCode, UsageError
from dkimctl.models import Secret

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
    is_new = store.get_secret(account) is None  # or says why not, before anybody types a secret
    secret = _secret(from_stdin=secret_stdin)
    token = session.client.issue_token(account.client_id, secret)
    store.set_secret(account, secret)
    if not store.set_token(account, token):
        session.reporter.warn(f"{store.name} cannot hold the token; each command will get its own")
    try:
        before = settings.remember_login(session.state_dir, session.profile)
    except UsageError:
        if is_new:  # logout would not know of it
            with suppress(CredentialsError):
                store.delete(account)
        raise
    _forget_login_before(session, before)
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
        if key in settings.LOGIN_KEYS and value != getattr(profile, key):
            raise UsageError(
                f"the config file has another {key} for the profile {profile.name}, "
                "which would override what login stores",
                hint="change it there, or log in with another --profile",
            )


def _forget_login_before(session: Session, logins: Mapping[str, Mapping[str, str]]) -> None:
    """Let go of the credentials that the profile had in `logins`, unless another has them too."""
    profile = session.profile
    before = logins.get(profile.name)
    used = [login for name, login in logins.items() if name != profile.name]
    used.append({key: getattr(profile, key) for key in settings.LOGIN_KEYS})
    if before is None or before in used:
        return
    try:
        session.forget(before)
    except CredentialsError as error:
        session.reporter.warn(f"the secret of the login before is still kept: {error.message}")


def _secret(*, from_stdin: bool) -> Secret:
    from dkimctl.credentials import parse_secret

    given = prompt.read_secret() if from_stdin else prompt.ask_secret("Client secret")
    secret = parse_secret(given, "the secret")
    if secret is None:
        raise CredentialsError("the secret is empty", hint="give the secret key of the client ID")
    return secret
