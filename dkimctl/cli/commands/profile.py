"""`dkimctl profile`: list the profiles, choose one, delete one."""

import json
import os
from typing import Annotated, Any

import typer

from dkimctl.cli import options, terminal
from dkimctl.cli.logins import delete_login
from dkimctl.cli.options import App, argument
from dkimctl.cli.output import table_layout
from dkimctl.cli.report import write
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import CredentialsError, ExitCode, UsageError, naming
from dkimctl.formats.table import Row, Style, below, table
from dkimctl.settings import profile as profiles
from dkimctl.settings.values import SANDBOX, SANDBOX_FIXED, profile_name
from dkimctl.text import quoted

app = App(
    "dkimctl profile list",
    "dkimctl profile use agency",
    "dkimctl profile delete agency",
    help="List the profiles, choose one, or delete one.",
)
NameArgument = Annotated[str, argument("NAME",
    "Name of the profile.", autocompletion=options.complete_profiles)]  # fmt: skip


@app.command("dkimctl profile list", "dkimctl profile list --format json", name="list")
def list_(ctx: typer.Context, fmt: options.TableOrJsonOption = None) -> int:
    """List the profiles, with their accounts, and which one is used. Sends nothing."""
    session = open_session(ctx)
    config, logins = session.config, session.logins
    used, source = profiles.resolve_name(session.sources)
    names = profiles.known_profiles(config, logins)
    if used not in names:
        hint = f"choose one of the list, or run `dkimctl login --profile {used}`"
        session.reporter.warn(f"the profile in use, {used}, does not exist ({source})", hint=hint)
    listing: list[dict[str, Any]] = []
    # As the sources define each: options and environment only choose the one in use.
    for name in names:
        settings = profiles.stored_settings(name, config, logins)
        if name == SANDBOX:
            settings |= SANDBOX_FIXED
        account: dict[str, Any] = {key: settings.get(key) for key in profiles.LOGIN_KEYS}
        logged_in: bool | None = name == SANDBOX
        if name != SANDBOX and all(account.values()):
            try:
                logged_in = session.has_credentials(account)
            except CredentialsError:  # the store cannot be used
                logged_in = None
        places = {"config": name in config.profiles, "login": name in logins}
        chosen_by = {"kind": source.kind, "name": source.name or None}
        listing.append(
            {
                "name": name,
                "in_use": name == used,
                "chosen_by": chosen_by if name == used else None,
                **account,
                "defined_in": [place for place, has in places.items() if has] or ["built in"],
                "logged_in": logged_in,
            }
        )
    if fmt is options.TableOrJson.JSON:
        write([json.dumps({"profiles": listing}, indent=1) + "\n"])
        return ExitCode.OK
    layout, rows = table_layout(session.reporter, None), []
    words = {True: "yes", False: "no", None: "unknown"}
    for profile in listing:
        in_use, name, logged_in = profile["in_use"], profile["name"], profile["logged_in"]
        logged = "not needed" if name == SANDBOX else words[logged_in]
        cells = ("*" if in_use else " ", name, logged, ", ".join(profile["defined_in"]))
        mark = Style.BOLD if in_use else ""
        styles = [mark, mark, Style.GREEN if logged_in else "", ""]
        ids = (profile["client_id"], profile["base_url"])
        lines = [*below(" at ".join(filter(None, ids)) or "no account yet", layout)]
        lines += below(f"in use, by {source}", layout) if in_use else ()
        rows.append(Row(cells, styles, lines))
    write(table(["", "PROFILE", "LOGGED IN", "FROM"], rows, layout))
    return ExitCode.OK


@app.command("dkimctl profile use agency", "dkimctl profile use default")
def use(ctx: typer.Context, name: NameArgument) -> int:
    """Use a profile from now on, unless another is named.

    An option, DKIMCTL_PROFILE and default_profile of the config file take precedence. The config
    file does not change.
    """
    session = open_session(ctx)
    _require_profile(session, name)
    reporter, default = session.reporter, session.config.default_profile
    if default == name:
        reporter.note(f"dkimctl: the config file already makes {name} the default profile")
        return ExitCode.OK
    if default is not None:
        raise UsageError(
            f"the config file has default_profile: {default}, which takes precedence",
            hint=f"change it in {session.config_file}, or name the profile with --profile {name}",
        )
    with profiles.logins_lock(session.state_dir):
        chosen = None if name == profiles.DEFAULT_PROFILE else name  # None leaves no file behind
        profiles.write_used_profile(session.state_dir, chosen)
    reporter.note(f"dkimctl: the profile {name} is used from now on")
    exported = os.environ.get("DKIMCTL_PROFILE")
    if exported and exported != name:
        reporter.warn(
            f"DKIMCTL_PROFILE is set to {quoted(exported)}, which takes precedence",
            hint="run `unset DKIMCTL_PROFILE`",
        )
    return ExitCode.OK


@app.command("dkimctl profile delete agency", "dkimctl profile delete agency -y")
def delete(ctx: typer.Context, name: NameArgument, yes: options.YesOption = False) -> int:
    """Delete a profile: its login, secret and token. Asks first.

    Its entries in the config file and the ledger stay, and so does a secret that other profiles
    use.
    """
    session = open_session(ctx)
    if name == SANDBOX:
        raise UsageError("the sandbox is built in, and cannot be deleted", hint="name another one")
    was_used = profiles.read_used_profile(session.state_dir) == name
    if not was_used:  # else a kill may have left no more than that
        _require_profile(session, name)
    note, what = session.reporter.note, f"the profile {name}"
    if not terminal.may_delete(note, what, ", with its login, secret and token", yes=yes):
        return ExitCode.NO
    existed, others = delete_login(session, name, and_profile=True)
    # What is gone, and what remains.
    config = session.config.profiles.get(name)
    stays = config is not None or name == profiles.DEFAULT_PROFILE
    if existed or not stays:
        note(f"dkimctl: deleted {'the login of ' * stays}{what}; the ledger keeps its domains")
    else:
        note(f"dkimctl: {what} has no login")
    if existed and others:
        note(f"dkimctl: the secret stays for {', '.join(others)}, with the same login")
    if config is not None:
        keys = f" ({', '.join(config)})" if config else ""
        note(f"dkimctl: it is still in {session.config_file}{keys}")
    if was_used:
        note(f"dkimctl: the profile {profiles.DEFAULT_PROFILE} is used from now on")
    return ExitCode.OK


def _require_profile(session: Session, name: str) -> None:
    if session.flags["profile"] is not None or session.flags["sandbox"]:
        hint = "give one, as the argument, without --profile"
        raise UsageError("two profiles are named", hint=hint)
    with naming("NAME"):
        profile_name(name)
    profiles.require_known(name, profiles.known_profiles(session.config, session.logins))
