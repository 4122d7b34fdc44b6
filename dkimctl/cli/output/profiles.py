"""What `profile` shows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from dkimctl.cli.output.destination import table_layout
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, LedgerError
from dkimctl.settings.logins import LOGIN_KEYS, read_used_profile
from dkimctl.settings.profile import (
    DEFAULT_PROFILE,
    Source,
    SourceKind,
    known_profiles,
    resolve_name,
    stored_settings,
)
from dkimctl.settings.values import SANDBOX, SANDBOX_FIXED
from dkimctl.text.grouping import counted

_LOGGED_IN = {True: "yes", False: "no", None: "unknown"}


def describe_profiles(session: Session) -> list[dict[str, Any]]:
    """Each profile as its sources define it: options and environment only choose the one in use."""
    used, source = resolve_name(
        flags=session.flags,
        environ=os.environ,
        config=session.config,
        config_file=str(session.config_file),
        used=lambda: read_used_profile(session.state_dir),
    )
    names = known_profiles(session.config, session.logins)
    if used not in names:
        session.reporter.warn(
            f"the profile in use, {used}, does not exist ({source})",
            hint=f"choose one of the list, or run `dkimctl login --profile {used}`",
        )
    return [
        {
            "name": name,
            "in_use": name == used,
            "chosen_by": {"kind": source.kind, "name": source.name or None}
            if name == used
            else None,
            **_account(session, name),
            "defined_in": _origins(session, name),
            "logged_in": _is_logged_in(session, name),
        }
        for name in names
    ]


def profile_rows(reporter: Reporter, profiles: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The profiles as a table."""
    from dkimctl.render.table import BOLD, GREEN, Row, below, table

    layout = table_layout(reporter, None)
    rows = []
    for profile in profiles:
        source = ""
        if chosen_by := profile["chosen_by"]:
            source = f"in use, by {Source(SourceKind(chosen_by['kind']), chosen_by['name'] or '')}"
        mark = BOLD if profile["in_use"] else ""
        logged_in = _LOGGED_IN[profile["logged_in"]]
        cells = (
            "*" if profile["in_use"] else " ",
            profile["name"],
            profile["client_id"],
            profile["base_url"],
            ", ".join(profile["defined_in"]),
            "not needed" if profile["name"] == SANDBOX else logged_in,
        )
        styles = [mark, mark, "", "", "", GREEN if profile["logged_in"] else ""]
        rows.append(Row(cells, styles, below(source, layout)))
    return table(["", "PROFILE", "CLIENT ID", "BASE URL", "FROM", "LOGGED IN"], rows, layout)


def report_deletion(
    session: Session,
    name: str,
    others: Sequence[str],
    *,
    existed: bool,
    domains: int,
    was_used: bool,
) -> None:
    """Say what is gone, and what remains."""
    note, config = session.reporter.note, session.config.profiles.get(name)
    stays = config is not None or name == DEFAULT_PROFILE
    if existed or not stays:
        note(f"dkimctl: deleted {'the login of ' if stays else ''}the profile {name}")
    else:
        note(f"dkimctl: the profile {name} has no login")
    if existed and others:
        note(f"dkimctl: the secret stays for {', '.join(others)}, with the same login")
    if config is not None:
        keys = f" ({', '.join(config)})" if config else ""
        note(f"dkimctl: it is still in {session.config_file}{keys}")
    if domains:
        note(f"dkimctl: the ledger keeps its {counted(domains, 'domain')}")
    if was_used:
        note(f"dkimctl: the profile {DEFAULT_PROFILE} is used from now on")


def count_domains(session: Session, name: str) -> int:
    """How many domains the ledger has of the profile's account; warns if it cannot be read."""
    from dkimctl.ledger.ledger import Ledger

    settings = stored_settings(name, session.config, session.logins)
    base_url, client_id = settings.get("base_url"), settings.get("client_id")
    if not (base_url and client_id):
        return 0
    try:
        with Ledger.open_existing(
            session.ledger_file, base_url=base_url, client_id=client_id
        ) as ledger:
            return ledger.count_domains(base_url, client_id)
    except LedgerError as error:
        session.reporter.warn(error.message, hint=error.hint, code=error.code)
        return 0


def _account(session: Session, name: str) -> dict[str, Any]:
    settings = stored_settings(name, session.config, session.logins)
    if name == SANDBOX:
        settings |= SANDBOX_FIXED
    return {key: settings.get(key) for key in LOGIN_KEYS}


def _origins(session: Session, name: str) -> list[str]:
    origins = []
    if name in session.config.profiles:
        origins.append("config")
    if name in session.logins:
        origins.append("login")
    return origins or ["built in"]


def _is_logged_in(session: Session, name: str) -> bool | None:
    """None if the store cannot be used."""
    account = _account(session, name)
    if name == SANDBOX or not all(account.values()):
        return name == SANDBOX
    try:
        return session.has_credentials(account)
    except CredentialsError:
        return None
