"""Show what `doctor` finds: a line for each finding, with what to do below."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dkimctl.cli.doctor.findings import Finding, State
from dkimctl.cli.output.destination import table_layout
from dkimctl.cli.output.streams import Reporter, write
from dkimctl.errors import ExitCode
from dkimctl.render.grid import DIM, GREEN, RED, YELLOW, lines_of, styled
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
        width = table_layout(reporter, None).width
        colour = reporter.shows_colour(sys.stdout)
        write(line for one in shown for line in _lines(one, width, colour=colour))
    text = ", ".join(f"{state} {counts[state]}" for state in State if counts[state])
    reporter.summarize(text, counts)
    return ExitCode.NO if counts[State.WRONG] else ExitCode.OK


def _lines(finding: Finding, width: int, *, colour: bool) -> Iterator[str]:
    room = max(width - _CHECK_WIDTH - _STATE_WIDTH - 2 * len(_GAP), _LEAST_ROOM)
    widths = (_CHECK_WIDTH, _STATE_WIDTH, room)
    style = _STYLES.get(finding.state, "") if colour else ""
    for check, state, text in _cells(finding, widths):
        padded = f"{state:<{_STATE_WIDTH}}"
        line = f"{check:<{_CHECK_WIDTH}}{_GAP}{styled(padded, style) if state else padded}{_GAP}"
        yield (line + text).rstrip() + "\n"


def _cells(finding: Finding, widths: Sequence[int]) -> Iterator[Sequence[str]]:
    yield from lines_of((finding.check, finding.state, printable(finding.message)), widths)
    if finding.hint:
        yield from lines_of(("", "", f"hint: {printable(finding.hint)}"), widths)
