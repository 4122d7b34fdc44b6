"""Settings as lines of a table, each with its source."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping

from dkimctl.settings.profile import Source
from dkimctl.text.escaping import printable

_GAP = "  "


def setting_lines(texts: Mapping[str, str], sources: Mapping[str, Source]) -> Iterator[str]:
    """A line for each text, by its key; a source that does not fit a terminal gets its own."""
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None
    longest_key = max(map(len, texts))
    for key, text in texts.items():
        line = f"{key.replace('_', ' '):<{longest_key}}{_GAP}{printable(text)}"
        if key not in sources:
            yield f"{line}\n"
            continue
        source = f"({printable(str(sources[key]))})"
        if width is not None and len(line) + len(_GAP) + len(source) > width:
            yield f"{line}\n"
            line = " " * longest_key
        yield f"{line}{_GAP}{source}\n"
