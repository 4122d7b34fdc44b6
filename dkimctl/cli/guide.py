"""What `dkimctl` alone says: where the profile stands, and what comes next."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dkimctl.cli import next_steps
from dkimctl.cli.next_steps import SPEC_FILE
from dkimctl.cli.output import table_layout
from dkimctl.cli.report import write
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.session import Session
from dkimctl.cli.urgent import WARNINGS
from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import CredentialsError, ExitCode
from dkimctl.formats.table import INDENT, Style, lines_of, styled, wrapped
from dkimctl.models import named
from dkimctl.rotation.life import NOT_IN_USE, Key, KeyStage, NextAction, due_first, read_keys
from dkimctl.settings.profile import login_of, require_ledger_account, settings_of
from dkimctl.text import counted, few, printable


class NextStep(NamedTuple):
    """A command, in backticks, that runs as it stands, and what it does."""

    command: str
    purpose: str


_GAP = "   "
_LAST = (
    NextStep("`dkimctl doctor`", "check the set-up"),
    NextStep("`dkimctl --help`", "list all commands"),
)
_LOGIN = NextStep("`dkimctl login`", "verify and store the client secret")
_OVERVIEW = NextStep("`dkimctl overview`", "what matters today, this week and this month")
_CHECK = NextStep("`dkimctl check-dns`", "ask DNS whether all records are there")


class Guide(NamedTuple):
    """Where the profile stands, and the commands that come next."""

    lines: Sequence[str]
    steps: Sequence[NextStep]
    is_urgent: bool = False  # what the first line says


def show_guide(session: Session) -> ExitCode:
    """Write it to stdout. Raises DkimctlError."""
    guide, reporter = find_guide(session), session.reporter
    layout = table_layout(reporter, None)
    lines: list[str] = []
    for at, text in enumerate(guide.lines):
        lines += wrapped(text, layout, Style.BOLD_RED if guide.is_urgent and at == 0 else "")
    lines += ["\n", styled("Next:", Style.BOLD, layout) + "\n"]
    # The commands, each with its purpose beside it or, where there is no room, above it.
    steps = [*guide.steps, *_LAST]
    typed = [printable(reporter.complete(step.command)).replace("`", "") for step in steps]
    widest = max(map(len, typed))
    room = layout.width - len(INDENT + _GAP) - widest
    for command, step in zip(typed, steps, strict=True):
        if room < 20:
            lines.append(f"{INDENT}{step.purpose}:\n{INDENT * 2}{command}\n")
            continue
        for first, text in lines_of((command, step.purpose), (widest, room)):
            lines.append(f"{INDENT}{first:<{widest}}{_GAP}{text}".rstrip() + "\n")
    write(lines)
    return ExitCode.OK


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
        if session.config_file.exists() or session.logins:
            text = "log in: it asks for the URLs, the client ID and the secret"
            return Guide([f"{where} has no account yet."], [NextStep("`dkimctl login`", text)])
        start = NextStep("`dkimctl init`", "set up an account")
        return Guide([f"{where}: nothing is set up yet."], [start, *_try_it()])
    where += f": client ID {printable(profile.client_id)} at {profile.base_url}"
    registered = guide_to_keys(session)
    if not _is_logged_in(session):
        login = Guide([f"{where}, not logged in."], [_LOGIN])
        if registered is None:
            return login
        first, rest = (registered, login) if registered.is_urgent else (login, registered)
        steps = [*first.steps, *rest.steps]
        return Guide([*first.lines, *rest.lines], steps, first.is_urgent)
    return registered or _to_register(session, [f"{where}, logged in. Nothing is registered yet."])


def _try_it() -> Sequence[NextStep]:
    """How to begin with the embedded service."""
    if not is_installed():
        return [NextStep(f"`{INSTALL}`", "get the embedded service, to try it")]
    if Path(SPEC_FILE).exists():
        command = f"`dkimctl register --sandbox {SPEC_FILE}`"
    else:
        command = "`dkimctl init --sandbox --domain example.com`"
    return [NextStep(command, "or try it without an account")]


def _to_register(session: Session, lines: Sequence[str]) -> Guide:
    if Path(SPEC_FILE).exists():
        plan = next_steps.command("register --dry-run", [SPEC_FILE])
        register = next_steps.command("register", [SPEC_FILE])
        steps = [NextStep(plan, "show what would be registered"), NextStep(register, "register it")]
        return Guide(lines, steps)
    option = "--domain example.com" if session.profile.is_sandbox else "--no-config"
    return Guide(lines, [NextStep(f"`dkimctl init {option}`", f"write a first {SPEC_FILE}")])


def _is_logged_in(session: Session) -> bool:
    """As far as is known: a secret in a keyring is not looked for, but its login is."""
    if any(os.environ.get(name) for name in ("DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN")):
        return True
    profile = session.profile
    if profile.credential_store == "file":
        try:
            return session.credential_store.has_secret(session.stored_account)
        except CredentialsError:
            return False
    login = login_of(profile)
    return any(settings_of(stored) == login for stored in session.logins.values())


def guide_to_keys(session: Session) -> Guide | None:
    """What the profile's keys need, by the ledger; None if it has none."""
    from dkimctl.cli.selected import read_selection

    ledger = session.open_ledger(for_writing=False)
    domains = ledger.count_domains(*require_ledger_account(session.profile))
    if domains > 5_000:  # domains whose keys are looked through in half a second
        return Guide([f"{domains:,} domains are registered."], [_OVERVIEW, _CHECK])
    now = datetime.now(UTC)
    every = read_keys(ledger, read_selection(session, None), session.config.rotation, now)
    keys = sorted(every, key=due_first)
    if not keys:
        return None
    return guide_of(keys, now, by_target=session.has_dns_targets)


def guide_of(keys: Sequence[Key], now: datetime, *, by_target: bool) -> Guide:
    """What these keys need first; `by_target`: the config file says how to change DNS."""
    used = [key for key in keys if key.stage not in NOT_IN_USE]
    stages = Counter(str(key.stage) for key in keys)
    counts = ", ".join(f"{stage} {stages[stage]}" for stage in KeyStage if stages[stage])
    domains = len({key.sign_domain for key in used})
    summary = f"{counted(len(used), 'key')} of {counted(domains, 'domain')}: {counts}."

    if urgent := [key for key in keys if key.urgency]:
        lines = []
        for urgency, text in WARNINGS.items():
            if some := [named(key) for key in urgent if key.urgency == urgency]:
                word = "URGENT" if urgency is not Urgency.SOON else "Soon urgent"
                lines.append(f"{word}: {text}: {len(some)} ({few(some)}).")
        return Guide([*lines, summary], _to_publish(urgent, by_target=by_target), is_urgent=True)

    if undecided := [key for key in keys if key.needs_attention]:
        line = f"{_keys(undecided, 'needs', 'need')} a decision of yours: {_few(undecided)}."
        step = NextStep("`dkimctl list --sort-by due`", "see the notes")
        return Guide([line, summary], [step])

    if missing := [key for key in keys if key.action is NextAction.PUBLISH]:
        line = f"{_keys(missing, 'has', 'have')} not been seen in DNS: {_few(missing)}."
        return Guide([line, summary], _to_publish(missing, by_target=by_target))

    due = [key for key in keys if key.due is not None and key.due <= now]
    lines, steps = [], []
    if old := [key for key in due if key.action is NextAction.REGISTER]:
        lines.append(f"{_keys(old, 'is', 'are')} due for replacement: {_few(old)}.")
        selection = next_steps.select_domains(key.sign_domain for key in old)
        steps.append(
            NextStep(next_steps.command("rotate", selection), "print the specs of their successors")
        )
    if gone := [key for key in due if key.action is NextAction.REMOVE]:
        lines.append(f"{_keys(gone, 'is', 'are')} retired, and can leave DNS: {_few(gone)}.")
        steps.append(NextStep("`dkimctl rotate --retired`", "look at DNS, and list them"))
    if lines and by_target:
        steps = [NextStep("`dkimctl rotate run`", "do it; once a day from a timer, it always will")]
    if lines:
        return Guide([*lines, summary], steps)

    well = "All is well."
    planned = [(key.due, key) for key in keys if key.due and key.action is not NextAction.NONE]
    if planned:
        at, first = min(planned, key=lambda pair: pair[0])
        # A key that waits does so for its start.
        what = "signing starts" if first.action is NextAction.WAIT else str(first.action)
        well += f" Next: {at:%Y-%m-%d}, {what}, {named(first)}."
    return Guide([well, summary], [_OVERVIEW, _CHECK])


def _to_publish(keys: Sequence[Key], *, by_target: bool) -> list[NextStep]:
    selection = next_steps.select_domains(key.sign_domain for key in keys)
    if by_target:
        command, purpose = next_steps.publish(selection, by_target=True), "put the records into DNS"
    else:
        command = next_steps.command("show-dns", selection)
        purpose = "show the records to put into DNS"
    return [
        NextStep(command, purpose),
        NextStep(next_steps.wait_for(selection), "wait until all servers have them"),
    ]


def _keys(keys: Sequence[Key], singular: str, several: str) -> str:
    return f"{counted(len(keys), 'key')} {singular if len(keys) == 1 else several}"


def _few(keys: Sequence[Key]) -> str:
    return few([named(key) for key in keys])
