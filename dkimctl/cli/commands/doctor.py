"""`dkimctl doctor`: what is wrong with the set-up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from dkimctl.cli import terminal
from dkimctl.cli.doctor_checks import Finding, State
from dkimctl.cli.options import ACCOUNT, CONNECTION, App, TableOrJson, TableOrJsonOption, examples
from dkimctl.cli.output.destination import table_layout
from dkimctl.cli.output.streams import Reporter, write
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode
from dkimctl.render.renderer import TableLayout
from dkimctl.render.table import DIM, GREEN, RED, YELLOW, lines_of, styled
from dkimctl.text.escaping import printable

app = App()
_STYLES = {
    State.OK: GREEN,
    State.WARNING: YELLOW,
    State.WRONG: RED,
    State.UNKNOWN: YELLOW,
    State.NOT_CHECKED: DIM,
}
_CHECK_WIDTH = len("embedded service")
_STATE_WIDTH = max(map(len, State))
_GAP = "  "
_LEAST_ROOM = 30  # columns, for the text
_NO_NEWS = (State.OK, State.NOTE, State.NOT_CHECKED)


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
    from dkimctl.cli.doctor_run import examine

    session = open_session(ctx)
    with terminal.interruptible("nothing was changed"):
        findings = examine(session, offline=offline)
        return show_findings(session.reporter, findings, is_json=fmt is TableOrJson.JSON)


def show_findings(reporter: Reporter, findings: Iterable[Finding], *, is_json: bool) -> ExitCode:
    """Write each finding as soon as it is there, or all as JSON; returns the exit code.

    With --quiet, only what is wrong, unknown or a warning.
    """
    counts: Counter[str] = Counter()

    def counted() -> Iterator[Finding]:
        for finding in findings:
            counts[finding.state] += 1
            yield finding._replace(hint=reporter.complete(finding.hint))

    if is_json:
        items = [one._asdict() for one in counted()]
        write([json.dumps({"items": items, "count": len(items)}, indent=2) + "\n"])
    else:
        shown = (one for one in counted() if not (reporter.quiet and one.state in _NO_NEWS))
        layout = table_layout(reporter, None)
        write(line for one in shown for line in _lines(one, layout))
    text = ", ".join(f"{state} {counts[state]}" for state in State if counts[state])
    reporter.summarize(text, counts)
    return ExitCode.NO if counts[State.WRONG] else ExitCode.OK


def _lines(finding: Finding, layout: TableLayout) -> Iterator[str]:
    room = max(layout.width - _CHECK_WIDTH - _STATE_WIDTH - 2 * len(_GAP), _LEAST_ROOM)
    widths = (_CHECK_WIDTH, _STATE_WIDTH, room)
    cells = [*lines_of((finding.check, finding.state, printable(finding.message)), widths)]
    if finding.hint:
        cells += lines_of(("", "", f"hint: {printable(finding.hint)}"), widths)
    for check, state, text in cells:
        style = _STYLES.get(finding.state, "") if state else ""
        padded = styled(f"{state:<{_STATE_WIDTH}}", style, layout)
        yield f"{check:<{_CHECK_WIDTH}}{_GAP}{padded}{_GAP}{text}".rstrip() + "\n"
