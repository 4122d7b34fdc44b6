"""The config file, and the profile."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from dkimctl.cli.doctor.findings import Finding, State, wrong
from dkimctl.cli.output.streams import problem_lines
from dkimctl.cli.session import Session
from dkimctl.errors import DkimctlError, InputError
from dkimctl.settings.config import webhook_url
from dkimctl.settings.profile import require_account
from dkimctl.settings.values import parse_reference
from dkimctl.system.ownership import path_fault


def check_config(session: Session) -> Iterator[Finding]:
    check, path = "config file", session.config_file
    try:
        config = session.config
    except InputError as error:
        for text, hint in problem_lines(error.problems, lists_all=session.reporter.lists_all):
            yield Finding(check, State.WRONG, text, hint)
        return
    if not path.exists():
        yield Finding(check, State.OK, f"none, and none is needed ({path})")
    elif fault := path_fault(path):
        hint = fault.hint or "keep it in a directory that only you can write to"
        yield Finding(check, State.WARNING, fault.message, hint)
    else:
        profiles = ", ".join(config.profiles) or "none"
        yield Finding(check, State.OK, f"{path} is valid (profiles: {profiles})")


def check_profile(session: Session) -> Iterator[Finding]:
    profile = session.profile
    if profile.is_sandbox:
        yield Finding("profile", State.OK, "the sandbox, which needs no account")
        return
    _, base_url, client_id = require_account(profile)
    text = f"{profile.name}: client ID {client_id} at {base_url}"
    yield Finding("profile", State.OK, text)


def check_notices(session: Session) -> Iterator[Finding]:
    """Whether those who are to be told can be; nothing is sent."""
    check, notify = "notices", session.config.notify
    if not notify.command and not notify.webhook:
        text = "nobody is told of problems"
        hint = f"write `notify` into {session.config_file} to be told"
        yield Finding(check, State.NOTE, text, hint)
    if notify.command:
        program = notify.command[0]
        if shutil.which(program):
            yield Finding(check, State.OK, f"the program {program} is there")
        else:
            hint = "correct `command` of `notify` in the config file"
            yield Finding(check, State.WRONG, f"there is no program {program}", hint)
    if notify.webhook:
        yield _check_webhook(session, notify.webhook)


def _check_webhook(session: Session, text: str) -> Finding:
    reference = parse_reference(text)
    try:
        if reference is not None:
            webhook_url(session.secrets.read(reference).reveal())
    except DkimctlError as error:
        return wrong("notices", error)
    hint = "`dkimctl check-dns --test-notice` sends a notice as a test"
    return Finding("notices", State.OK, "a webhook is configured", hint)
