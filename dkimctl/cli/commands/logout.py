"""`dkimctl logout`: delete a profile's secret and token."""

from __future__ import annotations

from dkimctl.cli.command import App
from dkimctl.cli.login_storage import delete_login
from dkimctl.cli.options.shared import examples, with_session
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, UsageError
from dkimctl.settings.profile import profiles_with

app = App()


@app.command(epilog=examples("dkimctl logout", "dkimctl logout --profile agency"))
@with_session()
def logout(session: Session) -> int:
    """Log out: delete the secret and token of a profile.

    Its URLs, client ID and ledger stay.
    """
    if session.profile.is_sandbox:
        raise UsageError("the sandbox has no login", hint="name another --profile")
    name = session.profile.name
    login = delete_login(session)
    if login is None:
        session.reporter.note(f"dkimctl: the profile {name} is not logged in")
        return ExitCode.OK
    session.reporter.note(f"dkimctl: logged out of the profile {name}")
    profiles = profiles_with(login, session.config, session.logins)
    others = ", ".join(other for other in profiles if other != name)
    if others:
        session.reporter.note(f"dkimctl: and of {others}, which used the same login")
    return ExitCode.OK
