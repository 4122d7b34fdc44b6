"""`dkimctl timer`: have systemd or cron run `rotate run`."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import terminal, timers
from dkimctl.cli.options import App, YesOption, option
from dkimctl.cli.report import write
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, UsageError
from dkimctl.formats.table import INDENT
from dkimctl.notices import OUR_SECRETS
from dkimctl.settings import profile as profiles
from dkimctl.text import TIMERS_DOC, listed, printable

app = App()


@app.command("dkimctl timer", "dkimctl timer --yes", "dkimctl timer --remove")
def timer(
    ctx: typer.Context,
    remove: Annotated[bool, option("--remove", "Remove the timer.")] = False,
    yes: YesOption = False,
) -> int:
    """Install a systemd timer or cron line for `rotate run`.

    It runs `rotate run --quiet` for the profile four times a day: systemd units, yours or, for
    root, the system's; without systemd, a line of your crontab. What is written is shown before you
    are asked. A timer that was edited is left as it is, with exit code 1.
    """
    session = open_session(ctx)
    reporter, job = session.reporter, find_job(session, remove=remove)
    plan = timers.find_plan(job, remove=remove)
    what = f"the timer of the profile {job.profile}"
    if plan.by_hand:
        _warn(session, job)
        write([f"{plan.by_hand}\n"])
        hint = (
            "log in without su or sudo, install cron, or have your scheduler run the line above; "
            f"for a user who cannot log in, see {TIMERS_DOC}#on-a-server"
        )
        raise UsageError("neither systemd nor cron is available here", hint=hint)
    if not plan.steps:
        reporter.note(f"dkimctl: {what} is {'not ' if remove else ''}installed")
    else:
        for step in plan.steps:
            lines = [step.title, *(f"{INDENT}{line}".rstrip() for line in step.text.splitlines())]
            write(f"{printable(line)}\n" for line in lines)
        if not remove:
            _warn(session, job)
        question = f"{'Remove' if remove else 'Install'} {what}?"
        refusal = UsageError("there is no terminal to ask on", hint="add --yes")
        if not (yes or terminal.confirms(question, refusal=refusal, hint="nothing was changed")):
            reporter.note("dkimctl: nothing was changed")
            return ExitCode.NO
        for step in plan.steps:
            step.do()
        reporter.note(f"dkimctl: {what} is {'removed' if remove else 'installed'}")
    for text in () if remove else plan.see:
        reporter.note(f"dkimctl: {text}")
    return ExitCode.OK


def find_job(session: Session, *, remove: bool) -> timers.Job:
    """What runs with the profile, files and account that this command has."""
    settings = session.resolve_settings(may_be_new=remove)  # the profile may be deleted already
    if not remove:
        profiles.require_account(settings.profile)
    variables = {"HOME": str(Path.home()), "DKIMCTL_STATE_DIR": str(session.state_dir.absolute())}
    names = ("XDG_CONFIG_HOME", "XDG_DATA_HOME")
    variables |= {name: os.environ[name] for name in names if os.environ.get(name)}
    if session.flags["config"] or os.environ.get("DKIMCTL_CONFIG"):
        variables["DKIMCTL_CONFIG"] = str(session.config_file.absolute())
    given = (profiles.SourceKind.OPTION, profiles.SourceKind.ENVIRONMENT)
    for key, source in settings.sources.items():
        if key == "profile" or source.kind not in given:
            continue
        if key not in ("auth_url", "base_url", "client_id"):
            hint = f"write {key} into the config file"
            raise UsageError(f"{source.name} would not reach the timer", hint=hint)
        variables[profiles.variable(key).name] = getattr(settings.profile, key)
    path = shutil.which(sys.argv[0])
    program = [str(Path(path).absolute())] if path else [sys.executable, "-m", "dkimctl"]
    words = [*program, "rotate", "run", "--quiet", "--profile", settings.profile.name]
    secrets = session.config_file.absolute().parent / "secrets.env"
    return timers.Job(settings.profile.name, words, variables, secrets)


def _warn(session: Session, job: timers.Job) -> None:
    """Warn of what the runs will not find."""
    warn, profile = session.reporter.warn, session.profile
    with session.open_ledger(for_writing=False) as ledger:
        if not ledger.count_domains(*profiles.require_ledger_account(profile)):
            hint = "run `dkimctl register` first: its runs fail until then"
            warn(f"nothing is registered yet in {session.ledger_place}", hint=hint)
    names = session.config._replace(dns=tuple(session.dns_targets)).secret_variables()
    names |= {name for name in OUR_SECRETS if name in os.environ}
    if (proxy := profiles.exported_proxy(os.environ)) and not profile.is_sandbox:
        names.add(proxy[1].name)
    if names and not job.secrets.exists():
        hint = f"write them to {job.secrets}, one NAME='value' a line, which only you can read"
        text = f"its runs do not have the variables of your shell: {listed(sorted(names))}"
        warn(text, hint=hint)
    clone = Path(job.words[0]).parent.parent.parent  # whose environment has the program in bin
    if (clone / ".git").exists():
        hint = "install it for good first, such as with pipx: the runs fail once the clone is gone"
        warn(f"it runs the program of a clone, {job.words[0]}", hint=hint)
    is_in_keyring = profile.credential_store == "keyring" and not profile.is_sandbox
    if is_in_keyring and "DKIMCTL_CLIENT_SECRET" not in names:
        hint = "run `dkimctl login --credential-store file`"
        warn("the secret is in the keyring, which is locked while you are away", hint=hint)
