"""`dkimctl status`: the profile, and where its credentials are."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli.command import App
from dkimctl.cli.options.common import ACCOUNT
from dkimctl.cli.options.shared import TableOrJson, examples, with_session
from dkimctl.cli.output.streams import write
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, ExitCode
from dkimctl.models.secret import Token
from dkimctl.text.durations import format_duration
from dkimctl.text.escaping import printable

app = App()


@app.command(epilog=examples("dkimctl status", "dkimctl status --profile agency --format json"))
@with_session(ACCOUNT)
def status(
    session: Session,
    fmt: Annotated[
        TableOrJson,
        typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(TableOrJson)}."),
    ] = TableOrJson.TABLE,
) -> int:
    """Show the profile, and where its secret and token are. Sends nothing.

    The exit code is 3 if there is neither a secret nor a token.
    """
    profile = session.profile
    facts: dict[str, object] = {
        "profile": profile.name,
        "auth_url": profile.auth_url,
        "base_url": profile.base_url,
        "client_id": profile.client_id,
        "secret_source": None,
        "token": None,
        "token_expires_at": None,
        "problem": None,
    }
    facts |= {"secret_source": "none needed"} if profile.is_sandbox else _credentials(session)
    facts["problem"] = session.reporter.complete(str(facts["problem"] or "")) or None
    write([json.dumps(facts, indent=1) + "\n"] if fmt is TableOrJson.JSON else _lines(facts))
    return ExitCode.OK if facts["secret_source"] or facts["token"] else ExitCode.AUTH


def _credentials(session: Session) -> Mapping[str, object]:
    """The facts about the secret and token, of which neither is shown in full."""
    profile = session.profile
    if not (profile.auth_url and profile.base_url and profile.client_id):
        return {"problem": "not logged in: run `dkimctl login`"}
    try:
        source = session.credentials.secret_source(session.stored_account)
        token = session.credentials.get_token(session.stored_account)
    except CredentialsError as error:
        return {"problem": f"{error.message}: {error.hint}"}
    facts: dict[str, object] = {"secret_source": source}
    if token is not None:
        facts |= {"token": token.access_token.masked(), "token_expires_at": _expiry(token)}
    elif source is None:
        facts["problem"] = "no secret is stored: run `dkimctl login`"
    return facts


def _expiry(token: Token) -> str | None:
    if token.obtained_at is None:  # the user's own
        return None
    return datetime.fromtimestamp(token.expires_at, UTC).isoformat(timespec="seconds")


def _lines(facts: Mapping[str, object]) -> list[str]:
    shown = {key.replace("_", " "): _shown(key, value) for key, value in facts.items() if value}
    width = max(map(len, shown))
    return [f"{key:<{width}}  {text}\n" for key, text in shown.items()]


def _shown(key: str, value: object) -> str:
    text = printable(str(value))
    if key != "token_expires_at":
        return text
    left = datetime.fromisoformat(text).timestamp() - time.time()
    return f"{text} (in {format_duration(left)})"
