"""What `overview` shows: a screen of text, JSON, or a page in a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.destination import table_layout, write_chunks

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.rotation.overview import Overview

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
    write_chunks(_text(session, overview, is_json=is_json), None, is_paged=not is_json)
    names = [key.sign_domain for key in overview.urgent]
    if names and not is_json:
        selected = next_steps.select_domains(names)
        publish = next_steps.publish(selected, by_target=session.has_dns_targets)
        reporter.note(f"next: {publish}, then {next_steps.wait_for(selected)}")


def _text(session: Session, overview: Overview, *, is_json: bool) -> Iterable[str]:
    if is_json:
        from dkimctl.render.overview_items import overview_lines

        return overview_lines(overview)
    from dkimctl.render.overview_text import Screen, overview_text

    lines = shutil.get_terminal_size().lines if sys.stdout.isatty() else _LINES
    layout = table_layout(session.reporter, None)
    return overview_text(overview, Screen(layout, lines, session.reporter.complete))
