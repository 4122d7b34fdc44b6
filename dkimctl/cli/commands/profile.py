"""`dkimctl profile`: list the profiles, choose one, delete one."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.completion import complete_profiles
from dkimctl.cli.login_storage import delete_profile
from dkimctl.cli.options import App, TableOrJson, TableOrJsonOption, YesOption, examples
from dkimctl.cli.output.profiles import (
    count_domains,
    describe_profiles,
    profile_rows,
    report_deletion,
)
from dkimctl.cli.output.streams import write
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, UsageError, naming
from dkimctl.settings.logins import logins_lock, read_used_profile, write_used_profile
from dkimctl.settings.profile import DEFAULT_PROFILE, known_profiles, require_known
from dkimctl.settings.values import SANDBOX, profile_name
from dkimctl.text.escaping import quoted

app = App(
    help="List the profiles, choose one, or delete one.",
    epilog=examples(
        "dkimctl profile list", "dkimctl profile use agency", "dkimctl profile delete agency"
    ),
)

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the profile.", autocompletion=complete_profiles),
]


@app.command(
    "list", epilog=examples("dkimctl profile list", "dkimctl profile list --format json"), shows=()
)
def list_(
    ctx: typer.Context,
    fmt: TableOrJsonOption = TableOrJson.TABLE,
) -> int:
    """List the profiles, with their accounts, and which one is used.

    Sends nothing.
    """
    session = open_session(ctx)
    profiles = describe_profiles(session)
    if fmt is TableOrJson.JSON:
        import json

        write([json.dumps({"profiles": profiles}, indent=1) + "\n"])
    else:
        write(profile_rows(session.reporter, profiles))
    return ExitCode.OK


@app.command(epilog=examples("dkimctl profile use agency", "dkimctl profile use default"), shows=())
def use(ctx: typer.Context, name: NameArgument) -> int:
    """Use a profile from now on, where none is named.

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
    with logins_lock(session.state_dir):
        # None is the default, and leaves no file behind.
        write_used_profile(session.state_dir, None if name == DEFAULT_PROFILE else name)
    reporter.note(f"dkimctl: the profile {name} is used from now on")
    exported = os.environ.get("DKIMCTL_PROFILE")
    if exported and exported != name:
        reporter.warn(
            f"DKIMCTL_PROFILE is set to {quoted(exported)}, which takes precedence",
            hint="run `unset DKIMCTL_PROFILE`",
        )
    return ExitCode.OK


@app.command(
    epilog=examples("dkimctl profile delete agency", "dkimctl profile delete agency -y"), shows=()
)
def delete(ctx: typer.Context, name: NameArgument, yes: YesOption = False) -> int:
    """Delete a profile: its login, secret and token. Asks first.

    What the config file says of it, and its part of the ledger, stay. A secret that other profiles
    use as well stays, too.
    """
    session = open_session(ctx)
    if name == SANDBOX:
        raise UsageError("the sandbox is built in, and cannot be deleted", hint="name another one")
    was_used = read_used_profile(session.state_dir) == name
    if not was_used:  # else a kill may have left no more than that
        _require_profile(session, name)
    if not (yes or _ask(name)):
        session.reporter.note("dkimctl: nothing was deleted")
        return ExitCode.NO
    domains = count_domains(session, name)
    existed, others = delete_profile(session, name)
    report_deletion(session, name, others, existed=existed, domains=domains, was_used=was_used)
    return ExitCode.OK


def _require_profile(session: Session, name: str) -> None:
    if session.flags["profile"] is not None or session.flags["sandbox"]:
        raise UsageError(
            "two profiles are named", hint="give one, as the argument, without --profile"
        )
    with naming("NAME"):
        profile_name(name)
    require_known(name, known_profiles(session.config, session.logins))


def _ask(name: str) -> bool:
    message = f"there is no terminal to ask whether to delete the profile {name}"
    return prompt.confirms(
        f"Delete the profile {name}, with its login, secret and token?",
        refusal=UsageError(message, hint="add --yes"),
    )
