"""Write a file for each zone, and say which."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dkimctl.cli.output.destination import make_directory, write_chunks
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.streams import KEPT, Reporter
from dkimctl.errors import OutputError
from dkimctl.render.renderer import PerZoneRenderer, ZoneFile
from dkimctl.text.escaping import few
from dkimctl.text.grouping import MAX_ALIKE, counted, listed


def write_zone_files(renderer: PerZoneRenderer, options: OutputOptions, reporter: Reporter) -> None:
    """Write the files of `renderer`; without `output_dir`, the only one like `write_chunks`.

    Each file is replaced as a whole, or left as it is. Raises OutputError, and UsageError for
    records outside all zones.
    """
    files = list(renderer.files())
    if options.output_dir is not None:
        _write_into(options.output_dir, files, reporter)
        _report_leftovers(options.output_dir, files, renderer, options.zones, reporter)
    elif len(files) > 1:
        names = few([file.name for file in files])
        raise OutputError(
            f"the result is {len(files)} files ({names}), which need a directory",
            hint=f"name one with --output-dir; {KEPT}",
        )
    else:
        write_chunks(files[0].chunks if files else (), options.output)
        if files and options.output is not None:
            reporter.note(
                f"dkimctl: wrote {options.output} ({counted(files[0].records, 'record')})"
            )
    _report_empty(files, options.zones, reporter)


def _write_into(directory: Path, files: Sequence[ZoneFile], reporter: Reporter) -> None:
    make_directory(directory)
    written: list[str] = []
    try:
        for file in files:
            write_chunks(file.chunks, directory / file.name)
            written.append(f"{file.name} ({counted(file.records, 'record')})")
    finally:  # also after an error or Ctrl-C: these files are new, the others as they were
        if written:
            of = "" if len(written) == len(files) else f"{len(written)} of "
            names = _listed(written, reporter)
            reporter.note(
                f"dkimctl: wrote {of}{counted(len(files), 'file')} in {directory}: {names}"
            )


def _report_empty(files: Sequence[ZoneFile], zones: Sequence[str], reporter: Reporter) -> None:
    written = {file.zone for file in files}
    if empty := [zone for zone in dict.fromkeys(zones) if zone not in written]:
        reporter.note(f"dkimctl: no records, so nothing written, for {_listed(empty, reporter)}")


def _report_leftovers(
    directory: Path,
    files: Sequence[ZoneFile],
    renderer: PerZoneRenderer,
    zones: Sequence[str],
    reporter: Reporter,
) -> None:
    """Warn of files of these zones that may be out of date, and name those of others."""
    written = {file.name for file in files}
    stems = {renderer.stem(zone) for zone in zones}
    outdated: list[str] = []
    others: list[str] = []
    for name, stem in sorted(_zone_files(directory, renderer.suffix)):
        if name not in written and stem in stems:
            outdated.append(name)
        elif name not in written and "." in stem:  # main.tf.json is about no zone
            others.append(name)
    if outdated:
        names = _listed(outdated, reporter)
        reporter.warn(
            f"this run has no records for files of earlier runs in {directory}: {names}",
            hint="delete them, unless the selection left out their records",
            code="outdated_file",
        )
    if others:
        names = _listed(others, reporter)
        reporter.note(f"dkimctl: also in {directory}, and not written by this run: {names}")


def _listed(names: Sequence[str], reporter: Reporter) -> str:
    return listed(names, most=None if reporter.lists_all else MAX_ALIKE)


def _zone_files(directory: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """The files that look like ours: their names, and these without number and suffix."""
    ours = re.compile(rf"([\w-]+(?:\.[\w-]+)*?)(?:\.[0-9]+)?\.{re.escape(suffix)}", re.ASCII)
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names are enough
    except OSError:  # a directory may be writable and not readable
        return
    for name in names:
        if match := ours.fullmatch(name):
            yield name, match[1]
