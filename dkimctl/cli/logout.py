"""`dkimctl logout`: forget a profile's secret and token."""

from __future__ import annotations

import typer

from dkimctl import settings
from dkimctl.cli.options import examples, with_session
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)


@app.command(epilog=examples("dkimctl logout", "dkimctl logout --profile agency"))
@with_session
def logout(session: Session) -> int:
    """Forget the secret and token of a profile. The ledger stays."""
    if session.profile.is_sandbox:
        raise UsageError("the sandbox has no login", hint="name another --profile")
    session.credential_store.delete(session.account)
    settings.forget_login(session.state_dir, session.profile.name)
    session.reporter.note(f"dkimctl: logged out of the profile {session.profile.name}")
    return ExitCode.OK
