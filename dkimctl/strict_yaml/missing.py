"""What to say where a file should be, and is not."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from dkimctl.errors import UsageError
from dkimctl.text.escaping import printable

_MAX_NAMES = 1_000  # of a directory: comparing them takes long
_MAX_NAME = 100  # characters


def missing(path: str, hint: str = "") -> UsageError:
    """The error for a file that does not exist; `hint` is for when no other file resembles it."""
    if "://" in path:  # not quoted, since it may hold a password
        return UsageError(
            "a URL is not a file", hint="download it first, such as with `curl -fsSo FILE URL`"
        )
    similar = _similar(Path(path))
    return UsageError(
        f"no such file: {printable(path)}",
        hint=f"did you mean {similar}?"
        if similar
        else _shell_hint(path) or hint or "check the path",
    )


def directory(path: str) -> UsageError:
    """The error for a directory where a file should be."""
    if not path:
        return UsageError("the file name is empty", hint="check the variable it comes from")
    named = [name for name in _names(Path(path)) if name.lower().endswith((".yaml", ".yml"))]
    such = f", such as {Path(path, min(named))}" if named else ""
    return UsageError(f"{printable(path)} is a directory", hint=f"name a file in it{such}")


def _similar(path: Path) -> Path | None:
    """A file with a similar name; what comes after the last dot counts only among several."""
    import difflib

    names = _names(path.parent)
    name = path.name.lower()[:_MAX_NAME]
    stems = difflib.get_close_matches(
        Path(name).stem, {Path(one.lower()).stem for one in names}, n=1, cutoff=0.75
    )
    near = [one for one in names if Path(one.lower()).stem in stems]
    best = difflib.get_close_matches(name, near, n=1, cutoff=0)
    return path.with_name(best[0]) if best else None


def _names(path: Path) -> list[str]:
    """The names of the files in a directory; none if it cannot be read."""
    try:
        with os.scandir(path) as entries:
            some = itertools.islice(entries, _MAX_NAMES)
            return [
                entry.name for entry in some if len(entry.name) <= _MAX_NAME and entry.is_file()
            ]
    except OSError:
        return []


def _shell_hint(path: str) -> str:
    if path.startswith("~"):
        return "write ~ without quotes, for the shell to expand it"
    if any(char in path for char in "*?["):
        return "no file matches the pattern, or it is in quotes: name one file"
    return ""
