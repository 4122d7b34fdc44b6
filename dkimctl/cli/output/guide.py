"""Show a guide: where the profile stands, and the commands that come next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dkimctl.cli.guide.setup import find_guide
from dkimctl.cli.guide.steps import Guide, Step
from dkimctl.cli.output.destination import table_layout
from dkimctl.cli.output.streams import Reporter, write
from dkimctl.errors import ExitCode
from dkimctl.render.table import BOLD, BOLD_RED, INDENT, lines_of, styled, wrapped
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.cli.session import Session

_GAP = "   "
_LEAST_ROOM = 20  # columns
_LAST = (
    Step("`dkimctl doctor`", "check the set-up"),
    Step("`dkimctl --help`", "list all commands"),
)


def show_guide(session: Session) -> ExitCode:
    """Write it to stdout. Raises DkimctlError."""
    guide = find_guide(session)
    write(_lines(session.reporter, guide))
    return ExitCode.OK


def _lines(reporter: Reporter, guide: Guide) -> Iterator[str]:
    layout = table_layout(reporter, None)
    for at, text in enumerate(guide.lines):
        yield from wrapped(text, layout, BOLD_RED if guide.is_urgent and at == 0 else "")
    yield "\n"
    yield styled("Next:", BOLD, layout) + "\n"
    yield from _table(reporter, [*guide.steps, *_LAST], layout.width)


def _table(reporter: Reporter, steps: Sequence[Step], width: int) -> Iterator[str]:
    """The commands, each with its purpose beside it or, where there is no room, above it."""
    typed = [printable(reporter.complete(step.command)).replace("`", "") for step in steps]
    widest = max(map(len, typed))
    room = width - len(INDENT + _GAP) - widest
    for command, step in zip(typed, steps, strict=True):
        if room < _LEAST_ROOM:
            yield f"{INDENT}{step.purpose}:\n{INDENT * 2}{command}\n"
            continue
        for first, text in lines_of((command, step.purpose), (widest, room)):
            yield f"{INDENT}{first:<{widest}}{_GAP}{text}".rstrip() + "\n"
