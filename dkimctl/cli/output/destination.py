"""Where a result goes: to stdout, into a file, or into a directory with a file for each zone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.streams import write
from dkimctl.errors import OutputError
from dkimctl.files import replacing
from dkimctl.render.renderer import ZoneFile

_KEPT = "what was registered is in the ledger: dkimctl show-dns"


def write_files(
    files: Iterable[ZoneFile], output_options: OutputOptions, idle: Callable[[], None] | None
) -> None:
    """Write what is one file for each zone. Raises OutputError."""
    found = list(files)  # before anything can fail: making them may be what registers the domains
    if output_options.output_dir is not None:
        _make_directory(output_options.output_dir)
        for file in found:
            _replace(output_options.output_dir / file.name, file.chunks)
        return
    if len(found) > 1:
        names = ", ".join(file.name for file in found[:5]) + (", ..." if len(found) > 5 else "")
        raise OutputError(
            f"the result is {len(found)} files ({names}), and only one has a place to go",
            hint=f"name a directory in --output-dir; {_KEPT}",
        )
    write_chunks(found[0].chunks if found else (), output_options.output, idle)


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the directory {path}: {error.strerror or error}",
            hint=f"name another in --output-dir; {_KEPT}",
        ) from None


def require_place(output: Path) -> None:
    """See that a file could be written there. Raises OutputError."""
    if output.exists() and not output.is_file():  # such as /dev/stdout, written as it is
        return
    if not (output.parent.is_dir() and os.access(output.parent, os.W_OK)):
        raise OutputError(
            f"cannot write {output}: its directory is not there, or not writable",
            hint="name another file in --output",
        )


def write_chunks(
    chunks: Iterable[str],
    output: Path | None,
    idle: Callable[[], None] | None = None,
    *,
    must_arrive: bool = False,
) -> None:
    """Write one result into the file `output`, or to stdout; it is drawn to the end in any case.

    Raises OutputError; where it `must_arrive`, also for a reader that went away.
    """
    if output is None:
        write(chunks, idle, must_arrive=must_arrive)
    else:
        _replace(output, chunks)


def _replace(path: Path, chunks: Iterable[str]) -> None:
    """Put the text into the file at `path`, whole or not at all, drawing it to the end."""
    drawn = iter(chunks)
    try:
        with replacing(path) as file:
            file.writelines(drawn)
    except OSError as error:
        for _ in drawn:  # making them may be what registers the domains
            pass
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}",
            hint=f"see that its directory is there and has room; {_KEPT}",
        ) from None
