"""`dkimctl login`: verify the client ID and secret once, and store them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.base_url_check import naming_url, require_base_url
from dkimctl.cli.login_dialogue import ask_for_missing, ask_for_secret
from dkimctl.cli.login_storage import store_login
from dkimctl.cli.options import ACCOUNT, CONNECTION, App, examples
from dkimctl.cli.output import next_steps
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import CredentialsError, ExitCode, ServiceError, UsageError
from dkimctl.settings.logins import LOGIN_KEYS

if TYPE_CHECKING:
    from dkimctl.credentials.store import CredentialStore
    from dkimctl.models.secret import Secret, Token

app = App()

_EXPORTED_SECRETS = ("DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN")
_NOTHING_STORED = "nothing was stored"


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
    _refuse_environment()
    with prompt.interruptible(_NOTHING_STORED):
        ask_for_missing(session)
        _refuse_config(session)
        account, store = session.account, session.credential_store
        store.has_secret(account)  # reports an unusable store before the secret is typed
        if not allow_plaintext_keyring:
            _refuse_plaintext(store)
        secret = ask_for_secret(session, from_stdin=secret_stdin)
        token = _try_out(session, secret)
        store_login(session, secret, token)
    session.reporter.note(
        f"dkimctl: logged in as {account.client_id} at {account.base_url} "
        f"(profile {session.profile.name}); the secret is in the {store.name}"
    )
    file = next_steps.SPEC_FILE if Path(next_steps.SPEC_FILE).exists() else "FILE"
    session.reporter.note(f"dkimctl: next: {next_steps.plan_file(file)}")
    return ExitCode.OK


def _try_out(session: Session, secret: Secret) -> Token:
    """A token, with which the service was asked for nothing. Raises what either URL says."""
    try:
        token = session.client.issue_token(session.account.client_id, secret)
    except ServiceError as error:
        raise naming_url("auth URL", error) from None
    require_base_url(session, token)
    return token


def _refuse_environment() -> None:
    """Later commands would use these instead of what is stored."""
    exported = [name for name in _EXPORTED_SECRETS if os.environ.get(name)]
    if exported:
        raise UsageError(
            f"the environment sets {' and '.join(exported)}, which every command uses instead of "
            "a login",
            hint=f"to log in, first run `unset {' '.join(exported)}`",
        )


def _refuse_plaintext(store: CredentialStore) -> None:
    """Later commands need no permission: they store tokens only where the secret is."""
    if store.is_plaintext_keyring:
        raise CredentialsError(
            f"the {store.name} does not encrypt what it stores",
            hint="run `dkimctl login --credential-store file` for a file that only you can read, "
            "or `dkimctl login --allow-plaintext-keyring`",
        )


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
