"""`dkimctl token`: a valid access token for other programs, such as curl."""

from __future__ import annotations

import typer

from dkimctl.cli.options import ACCOUNT, CONNECTION, App, examples
from dkimctl.cli.output.streams import write
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode

_HINT = "read the token from stdout: `TOKEN=$(dkimctl token)`"

app = App()


@app.command(
    epilog=examples(
        "dkimctl token",
        "token=$(dkimctl token) && curl -H @<(printf 'Authorization: Bearer %s' \"$token\") URL",
    ),
    shows=(*ACCOUNT, *CONNECTION),
)
def token(ctx: typer.Context) -> int:
    """Print a valid access token.

    It is renewed if less than a minute of it is left.
    """
    session = open_session(ctx)
    write([f"{session.token_provider.token().reveal()}\n"], must_arrive=True, hint=_HINT)
    return ExitCode.OK
