"""`dkimctl login`: verify the client ID and secret once, and store them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.command import App
from dkimctl.cli.login_storage import store_login
from dkimctl.cli.options.common import ACCOUNT, CONNECTION
from dkimctl.cli.options.shared import examples, with_session
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, ExitCode, UsageError
from dkimctl.settings.logins import LOGIN_KEYS

if TYPE_CHECKING:
    from dkimctl.credentials.store import CredentialStore

app = App()

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
@with_session(ACCOUNT, CONNECTION)
def login(
    session: Session,
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

    Prompts for missing values. The secret is never taken from the command line.
    """
    _refuse_environment()
    _ask_for_missing(session)
    _refuse_config(session)
    account, store = session.account, session.credential_store
    store.has_secret(account)  # reports an unusable store before the secret is typed
    if not allow_plaintext_keyring:
        _refuse_plaintext(store)
    secret = prompt.read_client_secret(from_stdin=secret_stdin)
    token = session.client.issue_token(account.client_id, secret)
    store_login(session, secret, token)
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


def _refuse_plaintext(store: CredentialStore) -> None:
    """Later commands need no permission: they store tokens only where the secret is."""
    if store.is_plaintext_keyring:
        raise CredentialsError(
            f"the {store.name} does not encrypt what it stores",
            hint="run `dkimctl login --credential-store file` for a file that only you can read, "
            "or `dkimctl login --allow-plaintext-keyring`",
        )


def _ask_for_missing(session: Session) -> None:
    for key, question in _QUESTIONS.items():
        if getattr(session.resolve_settings(may_be_new=True).profile, key) is not None:
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
        raise UsageError("the sandbox needs no login", hint="run `dkimctl register --sandbox FILE`")
    for key, value in session.config.profiles.get(profile.name, {}).items():
        if key in LOGIN_KEYS and value != getattr(profile, key):
            raise UsageError(
                f"the config file has another {key} for the profile {profile.name}, "
                "which would override the login",
                hint="change it there, or log in with another --profile",
            )
