"""`dkimctl logout`: delete a profile's secret and token."""

from __future__ import annotations

import typer

from dkimctl.cli import prompt
from dkimctl.cli.login_storage import delete_login, login_to_delete, others_with
from dkimctl.cli.options import App, YesOption, examples
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import CredentialsError, ExitCode, UsageError

app = App()


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
    others = _others_logged_in(session, name)
    if others and not (yes or _ask(name, ", ".join(others))):
        session.reporter.note("dkimctl: nothing was deleted")
        return ExitCode.NO
    if not delete_login(session, name, with_others=others):
        session.reporter.note(f"dkimctl: the profile {name} is not logged in")
        return ExitCode.OK
    session.reporter.note(f"dkimctl: logged out of the profile {name}")
    if others:
        session.reporter.note(f"dkimctl: and of {', '.join(others)}, which used the same login")
    return ExitCode.OK


def _others_logged_in(session: Session, name: str) -> list[str]:
    """The other profiles that are logged in with the same secret."""
    login = login_to_delete(session, name, session.logins)
    if login is None:
        return []
    others = others_with(session, name, login, session.logins)
    try:
        return others if others and session.has_credentials(login) else []
    except CredentialsError:
        return others


def _ask(name: str, others: str) -> bool:
    what = f"logging out of {name} also logs out {others}: they use the same login"
    return prompt.may_delete(
        f"{what[:1].upper()}{what[1:]}. Go on?",
        refusal=UsageError(what, hint="add --yes to log out of all of them"),
    )
