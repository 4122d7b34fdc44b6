"""What `overview` shows: a screen of text, JSON, or a page in a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.destination import table_layout, write_chunks
from dkimctl.cli.output.streams import Reporter

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.models.overview import Overview

_LINES = 50  # where there is no terminal


def show_overview(
    session: Session, overview: Overview, *, is_json: bool, html: Path | None
) -> None:
    """Write the overview to stdout, or as a page to the file `html`. Raises OutputError."""
    reporter = session.reporter
    if html is not None:
        from dkimctl.render.html.overview_page import overview_page

        write_chunks([overview_page(overview, session.profile.name)], html)
        reporter.note(f"dkimctl: wrote {html}")
        return
    if is_json:
        from dkimctl.render.overview_items import overview_lines

        write_chunks(overview_lines(overview), None)
        return
    step = _next_step(session, overview)
    write_chunks(_text(reporter, overview, below=len(step)), None, is_paged=True)
    if step:
        reporter.note(step)


def _next_step(session: Session, overview: Overview) -> str:
    """What to do about urgent keys."""
    if not overview.urgent:
        return ""
    selected = next_steps.select_domains(key.sign_domain for key in overview.urgent)
    publish = next_steps.publish(selected, by_target=session.has_dns_targets)
    return f"next: {publish}, then {next_steps.wait_for(selected)}"


def _text(reporter: Reporter, overview: Overview, below: int) -> Iterable[str]:
    """The text; `below` it stand so many characters."""
    from dkimctl.render.overview_text import Screen, overview_text

    layout = table_layout(reporter, None)
    lines = shutil.get_terminal_size().lines if sys.stdout.isatty() else _LINES
    height = lines - (below // layout.width + 1)
    return overview_text(overview, Screen(layout, height, reporter.complete))
