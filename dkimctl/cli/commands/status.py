"""`dkimctl status`: the profile, where its settings come from, and where its credentials are."""

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import typer

from dkimctl.cli.options import App, TableOrJson, TableOrJsonOption
from dkimctl.cli.report import write
from dkimctl.cli.session import open_session
from dkimctl.credentials.store import IN_ENVIRONMENT
from dkimctl.errors import CredentialsError, ExitCode
from dkimctl.settings.profile import LOGIN, SetBy, exported_proxy, variable
from dkimctl.text import format_duration, printable

app = App()


@app.command("dkimctl status", "dkimctl status --profile agency --format json")
def status(ctx: typer.Context, fmt: TableOrJsonOption = None) -> int:
    """Show the profile, and where each of its settings comes from.

    Also shows where its secret and token are. Sends nothing. The exit code is 3 if there is neither
    a secret nor a token.
    """
    session = open_session(ctx)
    profile, sources = session.profile, dict(session.settings.sources)
    settings = profile._asdict()
    facts: dict[str, object] = {
        "profile": settings.pop("name"),
        **{key: settings.pop(key) for key in ("auth_url", "base_url", "client_id")},
        **dict.fromkeys(("secret_source", "token", "token_expires_at", "problem")),
        **settings,
    }
    if profile.is_sandbox:
        facts |= {"secret_source": "none needed"}
    elif not (profile.auth_url and profile.base_url and profile.client_id):
        facts["problem"] = "not logged in: run `dkimctl login`"
    else:
        try:
            secret_source = session.credentials.secret_source(session.stored_account)
            token = session.credentials.get_token(session.stored_account)
        except CredentialsError as error:
            facts["problem"] = f"{error.message}: {error.hint}"
        else:  # neither is shown in full
            if secret_source is not None:
                facts["secret_source"] = secret_source
                by = variable("client_secret") if secret_source == IN_ENVIRONMENT else LOGIN
                sources["secret_source"] = by
            if token is not None:
                facts["token"] = token.access_token.masked()
                is_own = token.obtained_at is None  # then its expiry is not known
                sources["token"] = variable("access_token") if is_own else LOGIN
                if not is_own:
                    expiry = datetime.fromtimestamp(token.expires_at, UTC)
                    facts["token_expires_at"] = expiry.isoformat(timespec="seconds")
            if secret_source is None and token is None:
                facts["problem"] = "no secret is stored: run `dkimctl login`"
    if facts["problem"]:
        facts["problem"] = session.reporter.complete(str(facts["problem"]))
    if not (profile.proxy or profile.is_sandbox) and (proxy := exported_proxy(os.environ)):
        facts["proxy"], sources["proxy"] = proxy
    if fmt is TableOrJson.JSON:
        named = {key: {"kind": kind, "name": name or None} for key, (kind, name) in sources.items()}
        write([json.dumps(facts | {"sources": named}, indent=1) + "\n"])
    else:
        write(_setting_lines(facts, sources))
    return ExitCode.OK if facts["secret_source"] or facts["token"] else ExitCode.AUTH


def _setting_lines(facts: Mapping[str, object], sources: Mapping[str, SetBy]) -> Iterator[str]:
    """A line for what is set, by its key; a source that does not fit a terminal gets its own."""
    texts = {key: str(value) for key, value in facts.items() if value and key != "problem"}
    for key in ("timeout", "max_wait"):
        texts[key] = f"{facts[key]:g} s"
    if defaults := facts["defaults"]:
        texts["defaults"] = json.dumps(defaults)
    if expires_at := texts.get("token_expires_at"):
        left = datetime.fromisoformat(expires_at).timestamp() - time.time()
        texts["token_expires_at"] += f" (in {format_duration(left)})"
    if problem := facts["problem"]:
        texts["problem"] = str(problem)
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else math.inf
    longest_key = max(map(len, texts))
    for key, text in texts.items():
        line = f"{key.replace('_', ' '):<{longest_key}}  {printable(text)}"
        if key in sources:
            source = f"({printable(str(sources[key]))})"
            if len(line) + 2 + len(source) > width:
                yield f"{line}\n"
                line = " " * longest_key
            line += f"  {source}"
        yield f"{line}\n"
