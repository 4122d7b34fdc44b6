"""What `dkimctl` alone says: where the profile stands, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dkimctl.cli import next_steps
from dkimctl.cli.next_steps import SPEC_FILE
from dkimctl.cli.output import table_layout
from dkimctl.cli.report import write
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.session import Session
from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import ExitCode
from dkimctl.formats.table import INDENT, Style, lines_of, styled, wrapped
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import named
from dkimctl.names import Selection
from dkimctl.rotation.life import NOT_IN_USE, Key, KeyStage, NextAction, due_first, read_keys
from dkimctl.settings.config import DnsTarget
from dkimctl.settings.profile import SourceKind
from dkimctl.settings.values import SANDBOX, SANDBOX_FIXED
from dkimctl.text import counted, few, printable


class Guide(NamedTuple):
    """Where the profile stands, and the commands that come next."""

    lines: Sequence[str]
    steps: Mapping[str, str]  # commands, in backticks, that run as they stand, with their purpose
    is_urgent: bool = False  # what the first line says


# Of keys that sign, or soon will, and are not in DNS.
URGENT_WARNINGS = {
    Urgency.SIGNING: "signing now without DNS, so receivers cannot verify the mail",
    Urgency.PARTLY: "signing now, but some servers lack it, so receivers that ask those cannot "
    "verify the mail",
    Urgency.SOON: "signing starts soon, but DNS is not ready",
}
_LAST = {"`dkimctl doctor`": "check the set-up", "`dkimctl --help`": "list all commands"}
_WELL = {
    "`dkimctl overview`": "what matters today, this week and this month",
    "`dkimctl check-dns`": "ask DNS whether all records are there",
}


def show_guide(session: Session) -> ExitCode:
    """Write it to stdout. Raises DkimctlError."""
    guide, reporter = find_guide(session), session.reporter
    layout = table_layout(reporter, None)
    lines: list[str] = []
    for at, text in enumerate(guide.lines):
        lines += wrapped(text, layout, Style.BOLD_RED if guide.is_urgent and at == 0 else "")
    lines += ["\n", styled("Next:", Style.BOLD, layout) + "\n"]
    # The commands, each with its purpose beside it or, where there is no room, above it.
    steps = {
        printable(reporter.complete(command)).replace("`", ""): purpose
        for command, purpose in {**guide.steps, **_LAST}.items()
    }
    widest = max(map(len, steps))
    room = layout.width - len(INDENT) - widest - 3  # spaces between
    for command, purpose in steps.items():
        if room < 20:
            lines.append(f"{INDENT}{purpose}:\n{INDENT * 2}{command}\n")
            continue
        for first, text in lines_of((command, purpose), (widest, room)):
            lines.append(f"{INDENT}{first:<{widest}}   {text}".rstrip() + "\n")
    write(lines)
    return ExitCode.OK


def find_guide(session: Session) -> Guide:
    """What comes next. Sends nothing, and opens no keyring, which may ask to be unlocked."""
    profile = session.profile
    try_it = {"`dkimctl init --sandbox --domain example.com`": "or try it without an account"}
    if not is_installed():
        try_it = {f"`{INSTALL}`": "in the clone of dkimctl: get the embedded service"}
        if profile.is_sandbox:
            return Guide(["The embedded service is not installed."], try_it)
    elif Path(SPEC_FILE).exists():
        try_it = {f"`dkimctl register --sandbox {SPEC_FILE}`": "or try it without an account"}
    where = f"Profile {profile.name}"
    if not (profile.is_sandbox or (profile.auth_url and profile.base_url and profile.client_id)):
        if only := _guide_of_sandbox_alone(session):
            return only
        if session.config_file.exists() or session.logins:
            purpose = "log in: it asks for the URLs, the client ID and the secret"
            return Guide([f"{where} has no account yet."], {"`dkimctl login`": purpose})
        start = {"`dkimctl init`": "set up an account"}
        return Guide([f"{where}: nothing is set up yet."], start | try_it)
    where += f": client ID {printable(profile.client_id or '')} at {profile.base_url}"
    log_in = {"`dkimctl login`": "verify and store the client secret"}
    login = Guide([f"{where}, not logged in."], log_in)
    is_logged_in = profile.is_sandbox or session.is_logged_in

    ledger, now = session.open_ledger(for_writing=False), datetime.now(UTC)
    if keys := [*read_keys(ledger, Selection(), session.config.rotation, now)]:
        keys.sort(key=due_first)
        registered = guide_of(keys, now, session.dns_targets, by_timer=session.has_timer)
    elif not is_logged_in:
        return login
    else:
        ready = f"{where}, logged in. Nothing is registered yet."
        line = "The sandbox is empty." if profile.is_sandbox else ready
        if Path(SPEC_FILE).exists():
            plan = next_steps.command("register --dry-run", [SPEC_FILE])
            register = next_steps.command("register", [SPEC_FILE])
            return Guide([line], {plan: "show what would be registered", register: "register it"})
        option = " --domain example.com" if profile.is_sandbox else ""
        return Guide([line], {f"`dkimctl init{option}`": f"write a first {SPEC_FILE}"})
    if is_logged_in:
        return registered
    first, rest = (registered, login) if registered.is_urgent else (login, registered)
    return Guide([*first.lines, *rest.lines], {**first.steps, **rest.steps}, first.is_urgent)


def _guide_of_sandbox_alone(session: Session) -> Guide | None:
    """That of the sandbox, if there are keys, and no profile was named or has an account."""
    others = {**session.config.profiles, **session.logins}.keys() - {SANDBOX}
    if others or session.settings.sources["profile"].kind is not SourceKind.DEFAULT:
        return None
    account = {key: SANDBOX_FIXED[key] for key in ("base_url", "client_id")}
    with Ledger.open_existing(session.ledger_file, **account) as ledger:
        if not ledger.known_keys():
            return None
    with Session(session.flags | {"sandbox": True}, session.reporter) as sandbox:
        guide = find_guide(sandbox)
    lines = [*guide.lines, "This is the sandbox: no account is set up yet."]
    own = {"dkimctl init": "set up an account"}  # without backticks: not for the sandbox
    return guide._replace(lines=lines, steps={**guide.steps, **own})


def guide_of(
    keys: Sequence[Key], now: datetime, targets: Sequence[DnsTarget] = (), *, by_timer: bool
) -> Guide:
    """What these keys need first; `by_timer`: a timer does what is due."""
    summary = _summary(keys)

    def said_of(some: Sequence[Key], singular: str, plural: str, rest: str) -> str:
        verb = singular if len(some) == 1 else plural
        return f"{counted(len(some), 'key')} {verb} {rest}: {few([*map(named, some)])}."

    lines, steps = list[str](), dict[str, str]()
    if urgent := [key for key in keys if key.urgency]:
        for urgency, text in URGENT_WARNINGS.items():
            if some := [named(key) for key in urgent if key.urgency == urgency]:
                word = "URGENT" if urgency is not Urgency.SOON else "Soon urgent"
                lines.append(f"{word}: {text}: {len(some)} ({few(some)}).")
        return Guide([*lines, summary], _to_publish(urgent, targets), is_urgent=True)
    if undecided := [key for key in keys if key.needs_attention]:
        line = said_of(undecided, "needs", "need", "your decision")
        return Guide([line, summary], {"`dkimctl list --sort-by due`": "see the notes"})
    if missing := [key for key in keys if key.action is NextAction.PUBLISH]:
        line = said_of(missing, "has", "have", "not been seen in DNS")
        if by_timer and all(_covers(targets, key) for key in missing):
            return Guide([line, "The timer publishes them.", summary], _WELL)
        return Guide([line, summary], _to_publish(missing, targets))

    due = [key for key in keys if key.due is not None and key.due <= now]
    if old := [key for key in due if key.action is NextAction.REGISTER]:
        lines.append(said_of(old, "is", "are", "due for replacement"))
        selection = next_steps.select_domains(key.sign_domain for key in old)
        steps[next_steps.command("rotate", selection)] = "print the specs of their successors"
    if gone := [key for key in due if key.action is NextAction.REMOVE]:
        lines.append(said_of(gone, "is", "are", "retired, and can leave DNS"))
        steps["`dkimctl rotate --retired`"] = "look at DNS, and list them"
    if lines:
        if by_timer and (targets or not gone):
            return Guide([*lines, "The timer does that.", summary], _WELL)
        timer = {"`dkimctl timer`": "install a timer that does it"}
        by_run = {"`dkimctl rotate run`": "do it"} | timer
        return Guide([*lines, summary], by_run if targets else steps)

    well = "All is well."
    # A key that waits for its successor's start is not counted beside it, nor for its last mail.
    waiting = (KeyStage.SUCCESSOR_REGISTERED, KeyStage.SUCCESSOR_PUBLISHED, KeyStage.STILL_SIGNING)
    planned = [(key.due, key) for key in keys if key.due and key.stage not in waiting
               and key.action is not NextAction.NONE]  # fmt: skip
    if planned:
        at, first = min(planned, key=lambda pair: pair[0])
        # A key that waits does so for its start.
        what = "signing starts" if first.action is NextAction.WAIT else first.action
        names = [named(key) for due, key in planned
                 if due.date() == at.date() and key.action is first.action]  # fmt: skip
        who = names[0] if len(names) == 1 else f"{len(names)} keys ({few(names)})"
        well += f" Next: {at:%Y-%m-%d}, {what}, {who}."
    timer = {"`dkimctl timer`": "install a timer that replaces old keys"}
    return Guide([well, summary], (timer if targets and not by_timer else {}) | _WELL)


def _summary(keys: Sequence[Key]) -> str:
    used = [key for key in keys if key.stage not in NOT_IN_USE]
    domains = len({key.sign_domain for key in used})
    text = f"{counted(len(used), 'key')} of {counted(domains, 'domain')}"
    stages = Counter(key.stage for key in keys)
    for title, is_closed in ((": ", False), (". Not in use: ", True)):
        shown = [stage for stage in KeyStage if (stage in NOT_IN_USE) is is_closed]
        counts = ", ".join(f"{stage} {stages[stage]}" for stage in shown if stages[stage])
        text += title + counts if counts else ""
    return f"{text}."


def _covers(targets: Sequence[DnsTarget], key: Key) -> bool:
    # A key of a pool was registered because a target has the zone that it leads to.
    return key.left is not None or any(target.may_have(key.sign_domain) for target in targets)


def _to_publish(keys: Sequence[Key], targets: Sequence[DnsTarget]) -> dict[str, str]:
    """The commands that put the records of keys into DNS, and wait for them."""
    selection = next_steps.select_domains(key.sign_domain for key in keys)
    wait = {next_steps.wait_for(selection): "wait until all servers have them"}
    if not targets:
        return {
            next_steps.command("show-dns", selection): "show the records to put into DNS",
            next_steps.command("handoff", selection): "or a sheet of what to enter in a web panel",
        } | wait
    covered = [key.sign_domain for key in keys if _covers(targets, key)]
    by_hand = [key.sign_domain for key in keys if not _covers(targets, key)]
    steps = {}
    if covered:
        publish = next_steps.publish(next_steps.select_domains(covered), by_target=True)
        steps[publish] = "put the records into DNS"
    if by_hand or not all(target.zones for target in targets):  # else its server decides
        sheet = next_steps.command("handoff", next_steps.select_domains(by_hand or covered))
        steps[sheet] = "what to enter by hand, where no target of `dns` has the zone"
    return steps | wait
