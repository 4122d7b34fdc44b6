"""Completion in shells: Typer's own, with completers for names of profiles, domains and clients.

A completer only reads: it creates no file, takes no lock, opens no keyring and sends nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from dkimctl.settings.profile import known_profiles, require_ledger_account

MOST_DOMAINS = 200  # a list that nobody would read further
# No shell expands anything in such a word, or needs quotes for it; and it is not an option.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@%+,-]*", re.ASCII)


def complete_profiles(ctx: typer.Context) -> list[str]:
    """The profiles of the config file, and those with a login."""
    session = _session(ctx)
    return _plain(known_profiles(session.config, session.logins))


def complete_selection(ctx: typer.Context, incomplete: str) -> list[str]:
    """The registered domains of the profile on the line. Without any, shells offer files."""
    # `rotate` takes a selection, or the second word of another command.
    words = ["run"] if ctx.command.name == "rotate" and not ctx.params["selection"] else []
    with contextlib.suppress(Exception):
        from dkimctl.ledger.ledger import domains_with_prefix

        session = _session(ctx)
        account = require_ledger_account(session.profile)
        words += domains_with_prefix(session.ledger_file, *account, incomplete, MOST_DOMAINS)
    return _plain(words)


def complete_clients(ctx: typer.Context) -> list[str]:
    """The clients in the embedded service's data file; a database may be far away."""
    from dkimctl.service.location import default_location, read_client_ids

    path = ctx.params.get("data") or default_location()
    return _plain(read_client_ids(path.expanduser())) if isinstance(path, Path) else []


def _session(ctx: typer.Context) -> Any:
    """A session with the profile that the line names, before or after the command."""
    from dkimctl.cli.session import open_session

    if config := ctx.meta.get("config"):
        # Shells have not expanded it. Standard input or a pipe would keep them waiting.
        ctx.meta["config"] = os.path.expanduser(config)  # noqa: PTH111 - keeps `//`
        if not Path(ctx.meta["config"]).is_file():
            raise FileNotFoundError
    return open_session(ctx)


def _plain(words: Iterable[str]) -> list[str]:
    return list(filter(_PLAIN.fullmatch, words))
