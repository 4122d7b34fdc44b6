"""How results are written: the format, its zones, and the destination."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from dkimctl.cli.report import KEPT, PLAIN_TERMINALS, Reporter, write
from dkimctl.errors import OutputError, UsageError, naming, os_errors_as
from dkimctl.files import atomic_writer
from dkimctl.formats.renderer import PER_ZONE, Format, Provider, TableLayout
from dkimctl.formats.table import columns_of
from dkimctl.names import parse_zone

FormatT = TypeVar("FormatT", bound=StrEnum)

# Other suffixes say nothing: a file may be called db.example.com.
_BY_SUFFIX = {".ndjson": "jsonl", ".md": "markdown", ".htm": "html", ".prom": "prometheus"}
_BY_SUFFIX |= {f".{name}": name for name in ("json", "jsonl", "csv", "zone", "nsupdate", "html")}
_BY_SUFFIX |= {f".{name}": name for name in ("pdf", "docx", "xlsx")}  # which no command writes
_WITH_ZONES = (Format.ZONE, Format.NSUPDATE, *PER_ZONE)
_FITTING: Mapping[str, Sequence[Format]] = {
    "--origin": [Format.ZONE], "--zone": _WITH_ZONES, "--find-zones": _WITH_ZONES,
    "--provider": [Format.TERRAFORM], "--wide": [Format.TABLE], "--output-dir": _WITH_ZONES,
}  # fmt: skip
_EXCLUSIVE = (
    ("--output", "--output-dir"), ("--zone", "--find-zones"), ("--origin", "--zone"),
    ("--origin", "--find-zones"), ("--origin", "--output-dir"),
)  # fmt: skip
LONG_TABLE = 200  # rows; a longer table on a terminal shows only those that need attention


class OutputOptions(NamedTuple):
    """The output options of `register` and `show-dns`."""

    fmt: Format
    is_default: bool = False  # no format was named
    ttl: int | None = 3600  # seconds; None: nsupdate deletes the records
    origin: str | None = None
    zones: Sequence[str] = ()  # A-labels in lower case, without trailing dot
    finds_zones: bool = False
    provider: Provider = Provider.ROUTE53
    output: Path | None = None
    output_dir: Path | None = None
    wide: bool = False
    #: By FQDN, what to add before a record: see wildcards.AddFirst.
    add_first: Mapping[str, tuple[str, ...] | None] = MappingProxyType({})

    @property
    def is_on_terminal(self) -> bool:
        return self.output is None and self.output_dir is None and sys.stdout.isatty()

    @property
    def has_zones(self) -> bool:
        return self.finds_zones or self.origin is not None or bool(self.zones)

    @property
    def is_per_zone(self) -> bool:
        if self.fmt is Format.ZONE:
            return self.finds_zones or bool(self.zones)
        # One script of nsupdate may be about several zones.
        return self.output_dir is not None if self.fmt is Format.NSUPDATE else self.fmt in PER_ZONE


def read_output_options(
    *, fmt: Format | None, output: Path | None, wide: bool, ttl: int = 3600,
    origin: str | None = None, zone: Sequence[str] | None = None, find_zones: bool = False,
    provider: Provider | None = None, output_dir: Path | None = None,
) -> OutputOptions:  # fmt: skip
    """Check these options, and gather them. Raises UsageError."""
    fmt = read_format(Format, fmt, output)
    output_options = OutputOptions(
        fmt or (Format.TABLE if wide else default_format(output or output_dir)), fmt is None, ttl,
        None if origin is None else read_zone("--origin", origin),
        [read_zone("--zone", name) for name in zone or ()],
        find_zones, provider or Provider.ROUTE53, output, output_dir, wide,
    )  # fmt: skip
    given = {
        "--origin": origin, "--zone": zone, "--find-zones": find_zones, "--provider": provider,
        "--wide": wide, "--output": output, "--output-dir": output_dir,
    }  # fmt: skip
    for option, fitting in _FITTING.items():
        if given[option] and output_options.fmt not in fitting:
            text = f"{option} has no effect with --format {output_options.fmt}"
            raise UsageError(text, hint=f"it is for {', '.join(sorted(fitting))}")
    for option, other in _EXCLUSIVE:
        if given[option] and given[other]:
            raise UsageError(f"{option} cannot be combined with {other}", hint="remove one of them")
    if not output_options.has_zones and (output_dir is not None or output_options.fmt in PER_ZONE):
        option = f"--format {output_options.fmt}" if output_dir is None else "--output-dir"
        hint = "name each with --zone ZONE, or look them up in DNS with --find-zones"
        raise UsageError(f"{option} needs the zones of your DNS", hint=hint)
    return output_options


def read_format(formats: type[FormatT], fmt: FormatT | None, output: Path | None) -> FormatT | None:
    """The format that was named, or else that of the suffix of `output`; None: neither says one.

    Raises UsageError for a suffix of a format that is none of `formats`.
    """
    if fmt or not output:
        return fmt
    name = _BY_SUFFIX.get(output.suffix.lower())
    if name and name not in [*formats]:
        hint = "name a format with --format (--help lists them), or write another suffix"
        if name == "pdf" and "html" in [*formats]:
            hint += "; for PDF, print the .html in a browser"
        raise UsageError(f"in --output: this command has no format for {output.suffix}", hint=hint)
    return formats(name) if name else None


def default_format(output: Path | None, *, for_machines: Format = Format.ZONE) -> Format:
    """A table on a terminal, `for_machines` for a pipe or a file."""
    return Format.TABLE if output is None and sys.stdout.isatty() else for_machines


def read_zone(option: str, text: str) -> str:
    with naming(option):
        return parse_zone(text)


def table_layout(reporter: Reporter, output: Path | None) -> TableLayout:
    """The width, colour and encoding of a table in the file `output`, or on stdout."""
    return TableLayout(
        width=shutil.get_terminal_size((120, 24)).columns,
        colour=output is None and reporter.shows_colour(sys.stdout),
        encoding=sys.stdout.encoding if output is None else "utf-8",
    )


def write_chunks(
    chunks: Iterable[str], output: Path | None, *, must_arrive: bool = False,
    in_background: bool = False, is_paged: bool = False, mode: int | None = None,
) -> None:  # fmt: skip
    """Write a result to the file `output`, or to stdout (see `write` for its options).

    What `is_paged` goes through the user's pager if stdout is a terminal. All chunks are taken,
    also where they cannot be written; then raises OutputError. The destination is opened after the
    first; any error leaves a file as it was.
    """
    if output is not None:
        _write_file(chunks, output, mode)
    elif is_paged and (pager := _find_pager()):
        _page("".join(chunks), pager)
    else:
        write(chunks, must_arrive=must_arrive, in_background=in_background, hint=KEPT)


def _write_file(chunks: Iterable[str], path: Path, mode: int | None) -> None:
    """Put the text into the file at `path`, whole or not at all."""
    chunks = iter(chunks)
    first = next(chunks, "")
    file, failure = None, OSError()
    stack = ExitStack()
    try:
        file = stack.enter_context(atomic_writer(path, mode=mode))
    except OSError as error:
        failure = error
    try:
        for text in itertools.chain([first], chunks):
            if file is not None:
                try:
                    file.write(text)
                except OSError as error:
                    file, failure = None, error
        hint = f"check that its directory exists and has space; {KEPT}"
        with os_errors_as(OutputError, f"cannot write {path}", hint=hint):
            if file is None:
                raise failure
            stack.close()
    except BaseException:
        with suppress(OSError):
            stack.__exit__(*sys.exc_info())
        raise


def _page(text: str, pager: str) -> None:
    """Show a result that is complete: through `pager` if it is long."""
    columns, lines = shutil.get_terminal_size()
    rows = [columns_of(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    # One line of the terminal is for the prompt.
    if sum(max(-(-row // columns), 1) for row in rows) < lines:
        write([text], hint=KEPT)
        return
    # By default, less quits if all fits on one screen, shows colours, and leaves the text there.
    # Options of the user for less come last.
    less = f"-R {os.environ['LESS']}" if "LESS" in os.environ else "FRX"
    # Ctrl-C is for the pager alone: less stops searching, more ends. A handler, since the pager
    # would inherit that a signal is ignored.
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(  # noqa: S602 - the command is the user's own
            pager, shell=True, input=text, text=True, errors="backslashreplace",
            env=os.environ | {"LESS": less}, check=False,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, previous)


def _find_pager() -> str | None:
    """The command of the user's pager; None: there is none, or no terminal to show it."""
    terminal = os.environ.get("TERM") or "dumb"
    is_plain = terminal in PLAIN_TERMINALS and os.name != "nt"
    if is_plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    pager = os.environ.get("PAGER")
    if pager is None:
        return None if os.name == "nt" else next(filter(shutil.which, ("less", "more")), None)
    program = (pager.split() or ["cat"])[0]
    is_missing = re.fullmatch(r"[\w./+-]+", program) and not shutil.which(program)
    return None if is_missing or pager.strip() in ("", "cat") else pager
