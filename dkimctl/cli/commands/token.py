"""`dkimctl token`: a valid access token for other programs, such as curl."""

from __future__ import annotations

from dkimctl.cli.command import App
from dkimctl.cli.options.common import ACCOUNT, CONNECTION
from dkimctl.cli.options.shared import examples, with_session
from dkimctl.cli.output.streams import write
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode

_HINT = "read the token from stdout: `TOKEN=$(dkimctl token)`"

app = App()


@app.command(
    epilog=examples(
        "dkimctl token",
        "token=$(dkimctl token) && curl -H @<(printf 'Authorization: Bearer %s' \"$token\") URL",
    )
)
@with_session(ACCOUNT, CONNECTION)
def token(session: Session) -> int:
    """Print a valid access token.

    It is renewed if less than a minute of it is left.
    """
    write([f"{session.token_provider.token().reveal()}\n"], must_arrive=True, hint=_HINT)
    return ExitCode.OK
