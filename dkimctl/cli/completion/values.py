"""The values that an option or argument can take, by its metavar.

Everything is only read: no file is created, no lock taken, no keyring opened, nothing sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dkimctl.cli.session import Session

MOST_DOMAINS = 200  # a list that nobody would read further
_HTTP_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_CREDENTIAL_STORES = ("keyring", "file")
_KEY_LENGTHS = ("1024", "2048")  # interface 2.3


class Files(StrEnum):
    """The files that the shell offers as well."""

    NONE = "none"
    ALL = "files"
    SPECS = "specs"
    DIRECTORIES = "directories"


class Candidate(NamedTuple):
    """A word that can follow, and what it means."""

    value: str
    help: str = ""


class Request(NamedTuple):
    """What is asked for: values that begin with `prefix`."""

    prefix: str
    typed: Mapping[str, Sequence[str]]  # the values on the line by the name of their option

    def session(self) -> Session:
        """A session with the profile that the line names."""
        from dkimctl.cli.output.streams import Reporter
        from dkimctl.cli.session import Session

        flags: dict[str, Any] = defaultdict(lambda: None)
        flags |= {name: values[-1] or True for name, values in self.typed.items() if values}
        flags["verbose"], flags["quiet"] = False, True
        _require_regular(flags["config"])
        return Session(flags, Reporter(quiet=True))


class Source(NamedTuple):
    """Where values come from."""

    find: Callable[[Request], Iterable[Candidate]]
    files: Files = Files.NONE


def source_of(parameter: Any) -> Source | None:
    """The source of an option's or argument's values; None if they are free text."""
    if choices := getattr(parameter.type, "choices", ()):
        return Source(partial(_fixed, choices))
    return _SOURCES.get(parameter.metavar)


def _fixed(words: Iterable[object], _request: Request) -> Iterable[Candidate]:
    return [Candidate(str(word)) for word in words]


def _profiles(request: Request) -> Iterable[Candidate]:
    from dkimctl.settings.profile import known_profiles, stored_settings
    from dkimctl.settings.values import SANDBOX

    session = request.session()
    for name in known_profiles(session.config, session.logins):
        client_id = stored_settings(name, session.config, session.logins).get("client_id")
        meaning = f"client ID {client_id}" if client_id else ""
        yield Candidate(name, "the embedded service" if name == SANDBOX else meaning)


def _domains(request: Request) -> Iterable[Candidate]:
    from dkimctl.ledger.prefixes import domains_with_prefix
    from dkimctl.settings.profile import require_ledger_account

    session = request.session()
    base_url, client_id = require_ledger_account(session.profile)
    domains = domains_with_prefix(
        session.ledger_file, base_url, client_id, request.prefix, MOST_DOMAINS
    )
    return map(Candidate, domains)


def _clients(request: Request) -> Iterable[Candidate]:
    from dkimctl.service.client_names import read_client_states
    from dkimctl.service.database.location import default_location, read_location

    given = request.typed.get("data")
    location = read_location(given[-1]) if given else default_location()
    if not isinstance(location, Path):  # a database may be far away
        return ()
    return [Candidate(*client) for client in read_client_states(location)]


def _nothing(_request: Request) -> Iterable[Candidate]:
    return ()


def _require_regular(path: str | None) -> None:
    """Raise OSError for what could keep the shell waiting, such as standard input."""
    if path is not None and not Path(path).is_file():
        raise FileNotFoundError


def _providers(_request: Request) -> Iterable[Candidate]:
    from dkimctl.publication.handoff.providers import PROVIDERS

    return [Candidate(provider.key, provider.name) for provider in PROVIDERS]


def _outputs(request: Request) -> Iterable[Candidate]:
    """The next word of the outputs that begin with the words typed so far."""
    import json

    from dkimctl.render.output_schema import described_outputs
    from dkimctl.settings.schemas import Schema, read_schema

    typed = list(request.typed.get("command", ()))
    if request.typed["schema"] != [Schema.OUTPUT]:
        return ()
    outputs = map(str.split, described_outputs(json.loads(read_schema(Schema.OUTPUT))))
    at = len(typed)
    nexts = {words[at]: None for words in outputs if words[:at] == typed and len(words) > at}
    return map(Candidate, nexts)


_SOURCES = {
    "FILE": Source(_nothing, Files.ALL),
    "[FILE]...": Source(_nothing, Files.ALL),
    "MAIL...": Source(_nothing, Files.ALL),
    "FILE|URL": Source(_nothing, Files.ALL),
    "DIR": Source(_nothing, Files.DIRECTORIES),
    "NAME": Source(_profiles),
    "SELECTION...": Source(_domains, Files.SPECS),
    "[SELECTION]...": Source(_domains, Files.SPECS),
    "CLIENT_ID": Source(_clients),
    "STORE": Source(partial(_fixed, _CREDENTIAL_STORES)),
    "[COMMAND]...": Source(_outputs),
    "METHOD": Source(partial(_fixed, _HTTP_METHODS)),
    "PROVIDER": Source(_providers),
    "BITS": Source(partial(_fixed, _KEY_LENGTHS)),
}
