"""From nothing to the first registration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dkimctl.cli.embedded_service import INSTALL, is_installed
from dkimctl.cli.guide.keys import guide_to_keys
from dkimctl.cli.guide.steps import Guide, Step
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.next_steps import SPEC_FILE
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError
from dkimctl.settings.logins import login_of, settings_of
from dkimctl.text.escaping import printable

_SECRETS = ("DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN")
_LOGIN = Step("`dkimctl login`", "verify and store the client secret")


def find_guide(session: Session) -> Guide:
    """What the profile needs next. Sends nothing, and opens no keyring, which may ask to be
    unlocked."""
    profile = session.profile
    if profile.is_sandbox:
        if not is_installed():
            return Guide(["The embedded service is not installed."], _try_it())
        return guide_to_keys(session) or _to_register(session, ["The sandbox is empty."])
    where = f"Profile {profile.name}"
    if not (profile.auth_url and profile.base_url and profile.client_id):
        return _without_account(session, where)
    where += f": client ID {printable(profile.client_id)} at {profile.base_url}"
    registered = guide_to_keys(session)
    if not _is_logged_in(session):
        login = Guide([f"{where}, not logged in."], [_LOGIN])
        if registered is None:
            return login
        both = [login, registered]
        return _joined(*(reversed(both) if registered.is_urgent else both))
    return registered or _to_register(session, [f"{where}, logged in. Nothing is registered yet."])


def _without_account(session: Session, where: str) -> Guide:
    if session.config_file.exists() or session.logins:
        text = "log in: it asks for the URLs, the client ID and the secret"
        return Guide([f"{where} has no account yet."], [Step("`dkimctl login`", text)])
    lines = [f"{where}: nothing is set up yet."]
    start = Step("`dkimctl init`", "set up an account")
    return Guide(lines, [start, *_try_it()])


def _try_it() -> Sequence[Step]:
    """How to begin with the embedded service."""
    if not is_installed():
        return [Step(f"`{INSTALL}`", "get the embedded service, to try it")]
    if Path(SPEC_FILE).exists():
        command = f"`dkimctl register --sandbox {SPEC_FILE}`"
    else:
        command = "`dkimctl init --sandbox --domain example.com`"
    return [Step(command, "or try it without an account")]


def _to_register(session: Session, lines: Sequence[str]) -> Guide:
    if Path(SPEC_FILE).exists():
        plan = Step(next_steps.plan_file(SPEC_FILE), "show what would be registered")
        register = Step(next_steps.register_file(SPEC_FILE), "register it")
        return Guide(lines, [plan, register])
    if session.profile.is_sandbox:
        command = "`dkimctl init --domain example.com`"
    else:
        command = "`dkimctl init --no-config`"
    return Guide(lines, [Step(command, f"write a first {SPEC_FILE}")])


def _joined(first: Guide, rest: Guide) -> Guide:
    steps = [*first.steps, *rest.steps]
    return Guide([*first.lines, *rest.lines], steps, first.is_urgent)


def _is_logged_in(session: Session) -> bool:
    """As far as is known: a secret in a keyring is not looked for, but its login is."""
    if any(os.environ.get(name) for name in _SECRETS):
        return True
    profile = session.profile
    if profile.credential_store == "file":
        try:
            return session.credential_store.has_secret(session.stored_account)
        except CredentialsError:
            return False
    login = login_of(profile)
    return any(settings_of(stored) == login for stored in session.logins.values())
