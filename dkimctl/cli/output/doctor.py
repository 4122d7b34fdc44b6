"""Show what `doctor` finds: a line for each finding, with what to do below."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from dkimctl.cli.doctor.findings import Finding, State
from dkimctl.cli.output.destination import table_layout
from dkimctl.cli.output.streams import Reporter, write
from dkimctl.errors import ExitCode
from dkimctl.render.renderer import TableLayout
from dkimctl.render.table import DIM, GREEN, RED, YELLOW, lines_of, styled
from dkimctl.text.escaping import printable

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
