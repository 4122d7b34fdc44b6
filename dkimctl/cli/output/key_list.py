"""What `list` shows: the keys, and how many they are."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output.destination import table_layout, write_chunks
from dkimctl.render.formats import open_key_renderer
from dkimctl.render.renderer import KeyFormat, render_all

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.models.listed_key import ListedKey


_UNLIMITED = 10_000  # columns: more than a row has


def show_keys(
    session: Session,
    keys: Sequence[ListedKey],
    fmt: KeyFormat | None,
    output: Path | None,
    *,
    now: datetime,
    is_wide: bool,
) -> None:
    """Write the keys to stdout or a file, and summarize their states. Raises OutputError."""
    reporter = session.reporter
    layout = table_layout(reporter, output)._replace(wide=is_wide)
    if output is not None or not sys.stdout.isatty():  # one line a key, for other programs
        layout = layout._replace(width=_UNLIMITED)
    renderer = open_key_renderer(fmt or KeyFormat.TABLE, layout, now)
    write_chunks(render_all(renderer, keys), output, is_paged=fmt in (None, KeyFormat.TABLE))
    counts = Counter(str(key.state or key.status.stage) for key in keys)
    states = ", ".join(f"{state} {count}" for state, count in counts.most_common())
    reporter.summarize(states or "no key matches", counts)
