"""Names of profiles, domains and clients, for which the shells' scripts ask.

They do so by environment variables: ASKED, and others with what is on the line. The answer is a
line for each name, with what it means after a tab. Everything is only read: no file is created, no
lock taken, no keyring opened, nothing sent. Whatever goes wrong, there is no answer, and no message
in the middle of typing.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dkimctl.cli.session import Session

ASKED = "_DKIMCTL_COMPLETE"
MOST_DOMAINS = 200  # a list that nobody would read further
# In no shell is anything in such a word expanded, or in need of quotes; and none is an option.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@%+,-]*", re.ASCII)

_Name = tuple[str, str]  # and what it means, if anything


def answer(environ: Mapping[str, str] = os.environ) -> int:
    """Write the names of the kind that a script asks for. An older script gets none."""
    find = _SOURCES.get(environ[ASKED], _nothing)
    try:
        names = [name for name in find(environ) if _PLAIN.fullmatch(name[0])]
    except Exception:  # noqa: BLE001 - the user is typing; running the command reports it
        names = []
    sys.stdout.write("".join("\t".join(filter(None, name)) + "\n" for name in names))
    return 0


def _nothing(_environ: Mapping[str, str]) -> Iterable[_Name]:
    return ()


def _profiles(environ: Mapping[str, str]) -> Iterable[_Name]:
    from dkimctl.settings.profile import known_profiles, stored_settings
    from dkimctl.settings.values import SANDBOX

    session = _session(environ)
    for name in known_profiles(session.config, session.logins):
        client_id = stored_settings(name, session.config, session.logins).get("client_id")
        meaning = f"client ID {client_id}" if client_id else ""
        yield name, "the embedded service" if name == SANDBOX else meaning


def _domains(environ: Mapping[str, str]) -> Iterable[_Name]:
    from dkimctl.ledger.ledger import domains_with_prefix
    from dkimctl.settings.profile import require_ledger_account

    session = _session(environ)
    base_url, client_id = require_ledger_account(session.profile)
    start = environ.get(f"{ASKED}_START", "")
    domains = domains_with_prefix(session.ledger_file, base_url, client_id, start, MOST_DOMAINS)
    return ((domain, "") for domain in domains)


def _clients(environ: Mapping[str, str]) -> Iterable[_Name]:
    from dkimctl.service.client_names import read_client_states
    from dkimctl.service.database.location import default_location, read_location

    given = _value("data", environ)
    location = read_location(given) if given else default_location()
    if not isinstance(location, Path):  # a database may be far away
        return ()
    return read_client_states(location)


def _session(environ: Mapping[str, str]) -> Session:
    """A session with the profile that the line names."""
    from dkimctl.cli.output.streams import Reporter

    flags: dict[str, Any] = defaultdict(lambda: None)
    for name in ("profile", "sandbox", "config", "base_url", "client_id"):
        flags[name] = _value(name, environ)
    if flags["config"] and not Path(flags["config"]).is_file():
        raise FileNotFoundError  # reading standard input or a pipe would keep the shell waiting
    return Session(flags, Reporter(quiet=True))


def _value(option: str, environ: Mapping[str, str]) -> str | None:
    """The value of an option on the line, which the shell has not expanded."""
    text = environ.get(f"{ASKED}_{option.upper()}", "")
    return os.path.expanduser(text) or None  # noqa: PTH111 - keeps `//`


_SOURCES = {"profiles": _profiles, "domains": _domains, "clients": _clients}
