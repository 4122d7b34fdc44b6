"""`dkimctl doctor`: what is wrong with the set-up."""

from __future__ import annotations

from typing import Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.options import ACCOUNT, CONNECTION, App, TableOrJson, TableOrJsonOption, examples
from dkimctl.cli.output.doctor import show_findings
from dkimctl.cli.session import open_session

app = App()


@app.command(
    epilog=examples(
        "dkimctl doctor",
        "dkimctl doctor --offline",
        "dkimctl doctor --profile agency --format json",
    ),
    shows=(*ACCOUNT, *CONNECTION),
)
def doctor(
    ctx: typer.Context,
    offline: Annotated[
        bool, typer.Option("--offline", help="Leave out what needs the network.")
    ] = False,
    fmt: TableOrJsonOption = TableOrJson.TABLE,
) -> int:
    """Check the set-up: what is wrong, and what to do about it.

    Checks the installation, the config file, the service and the clock, the credentials, the
    ledger, DNS, and what is overdue. It obtains a token, and tries an update of DNS that changes
    nothing. Nothing is stored or repaired.

    The exit code is 1 if something is wrong.
    """
    from dkimctl.cli.doctor.run import examine

    session = open_session(ctx)
    with prompt.interruptible("nothing was changed"):
        findings = examine(session, offline=offline)
        return show_findings(session.reporter, findings, is_json=fmt is TableOrJson.JSON)
