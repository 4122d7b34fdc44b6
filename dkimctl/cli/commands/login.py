"""`dkimctl login` and `logout`: a client ID and secret are verified and stored, or deleted."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import next_steps, terminal
from dkimctl.cli.logins import QUESTIONS, answer, delete_login, find_login, no_terminal, store_login
from dkimctl.cli.options import App, YesOption, option
from dkimctl.cli.session import open_session
from dkimctl.client.failures import TEST_PATH, strange_answer
from dkimctl.errors import (
    ClientRefused,
    CredentialsError,
    ExitCode,
    ServiceError,
    TokenRejected,
    UsageError,
)
from dkimctl.settings import profile as profiles
from dkimctl.settings.values import CHECKS

app = App()


@app.command(
    "dkimctl login --auth-url https://auth.example --base-url https://api.example",
    "dkimctl login --profile agency --client-id ID --secret-stdin < secret.txt",
    "dkimctl login --credential-store file",
)
def login(
    ctx: typer.Context,
    secret_stdin: Annotated[bool, option("--secret-stdin",
        "Read the client secret from standard input.")] = False,
    allow_plaintext_keyring: Annotated[bool, option("--allow-plaintext-keyring",
        "Store the secret even in an unencrypted keyring.")] = False,
) -> int:  # fmt: skip
    """Log in: verify a client ID and secret, and store them.

    Takes URLs and client ID from options, the environment and the config file, and prompts for
    the rest. The secret is never taken from the command line. Both URLs are tried; nothing is
    registered.
    """
    session = open_session(ctx)
    # Later commands would use these instead of what is stored.
    variables = ("DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN")
    if exported := [name for name in variables if os.environ.get(name)]:
        raise UsageError(
            f"the environment sets {' and '.join(exported)}, which every command uses instead of "
            "a login",
            hint=f"to log in, first run `unset {' '.join(exported)}`",
        )
    with terminal.interruptible("nothing was stored"):
        known = session.resolve_settings(may_be_new=True).profile
        missing = {key: label for key, label in QUESTIONS.items() if getattr(known, key) is None}
        if missing and not terminal.is_interactive():
            raise no_terminal([profiles.option(key).name for key in missing])
        for key, label in missing.items():
            text = answer(session, label, profiles.option(key).name, CHECKS[key], None)
            session.flags[key] = text
        # Other values in the config file would override what is stored.
        profile = session.profile
        if profile.is_sandbox:
            hint = "run `dkimctl register --sandbox FILE`"
            raise UsageError("the sandbox needs no login", hint=hint)
        for key, value in session.config.profiles.get(profile.name, {}).items():
            if key in profiles.LOGIN_KEYS and value != getattr(profile, key):
                raise UsageError(
                    f"the config file has another {key} for the profile {profile.name}, "
                    "which would override the login",
                    hint="change it there, or log in with another --profile",
                )
        account, store = session.account, session.credential_store
        store.entries(account)  # reports an unusable store before the secret is typed
        # Later commands need no permission: they store tokens only where the secret is.
        if not allow_plaintext_keyring and store.is_plaintext_keyring:
            raise CredentialsError(
                f"the {store.name} does not encrypt what it stores",
                hint="run `dkimctl login --credential-store file` for a file that only you can "
                "read, or `dkimctl login --allow-plaintext-keyring`",
            )
        secret = terminal.read_client_secret(session.reporter.warn, from_stdin=secret_stdin)
        try:
            token = session.client.issue_token(account.client_id, secret)
        except ServiceError as error:
            raise _naming_url("auth URL", error) from None
        except ClientRefused as error:
            hint = "check the client ID, and copy the secret again; the client may be deleted"
            raise ClientRefused(error.detail, hint=hint) from None
        warn = session.reporter.warn
        try:
            response = session.client.request(token.access_token, "GET", TEST_PATH)
        except TokenRejected as error:  # that of a disabled client is (interface 3.2)
            warn(f"base URL: {error.message}", hint=error.hint, code=error.code)
        except ServiceError as error:
            raise _naming_url("base URL", error) from None
        else:
            if strange := strange_answer(response.status, response.body):
                hint = "check the URL; if it is wrong, run `dkimctl login --base-url URL` again"
                warn(f"base URL: {account.base_url} {strange}", hint=hint)
        store_login(session, secret, token)
    session.reporter.note(
        f"dkimctl: logged in as {account.client_id} at {account.base_url} "
        f"(profile {profile.name}); the secret is in the {store.name}"
    )
    has_file = Path(next_steps.SPEC_FILE).exists()
    is_first = not (has_file or session.ledger_file.exists() or profile.ledger)
    file = next_steps.SPEC_FILE if has_file or is_first else "FILE"
    step = next_steps.command("register --dry-run", [file])
    init = "`dkimctl init`, which writes a first spec file, then " if is_first else ""
    session.reporter.note(f"dkimctl: next: {init}{step}")
    return ExitCode.OK


@app.command(
    "dkimctl logout", "dkimctl logout --profile agency", "dkimctl logout --profile agency --yes"
)
def logout(ctx: typer.Context, yes: YesOption = False) -> int:
    """Log out: delete the secret and token of a profile.

    Its URLs, client ID and ledger stay. If other profiles use the same login, asks first.
    """
    session = open_session(ctx)
    note, name = session.reporter.note, session.profile.name
    if session.profile.is_sandbox:
        raise UsageError("the sandbox has no login", hint="name another --profile")
    stored, others = find_login(session, name, session.logins)
    if stored and others:
        with suppress(CredentialsError):  # then there may be a secret
            others = others if session.has_credentials(stored) else []
    if others and not yes:
        what = f"logging out of {name} also logs out {', '.join(others)}: they use the same login"
        refusal = UsageError(what, hint="add --yes to log out of all of them")
        if not terminal.confirms(f"{what[:1].upper()}{what[1:]}. Go on?", refusal=refusal):
            note("dkimctl: nothing was deleted")
            return ExitCode.NO
    existed, _ = delete_login(session, name, with_others=others)
    if not existed:
        note(f"dkimctl: the profile {name} is not logged in")
        return ExitCode.OK
    note(f"dkimctl: logged out of the profile {name}")
    if others:
        note(f"dkimctl: and of {', '.join(others)}, which used the same login")
    return ExitCode.OK


def _naming_url(name: str, error: ServiceError) -> ServiceError:
    """The error with the name of the URL whose host failed."""
    message = f"{name}: {error.message}; nothing was stored"
    return type(error)(message, hint=error.hint, retry_after=error.retry_after)
