"""Where results go: a format and a destination; what needs attention, and the exit code."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from dkimctl.cli.output import LONG_TABLE, OutputOptions, table_layout, write_chunks
from dkimctl.cli.report import KEPT, Reporter
from dkimctl.errors import ExitCode, OutputError, UsageError, os_errors_as, worst
from dkimctl.formats.dns_tools import PerZoneRenderer, ZoneFile
from dkimctl.formats.renderer import (
    NOT_FOR_DNS,
    Format,
    Renderer,
    TableLayout,
    publishable,
    render_all,
)
from dkimctl.formats.results import open_results
from dkimctl.models import USABLE, Outcome, Result, named
from dkimctl.names import outside_zones, zone_finder
from dkimctl.settings.rotation import Pool
from dkimctl.text import MAX_ALIKE, counted, few, listed, without_names

_HINTS = {
    Outcome.BLOCKED: "do what the reason says, and run the same command again",
    Outcome.DIFFERS: "correct the entry, or register another selector for a new key",
    Outcome.TAKEN: "choose another selector, or ask the service's operator who owns it",
    Outcome.INVALID: "fix the entry and run the same command again",
    Outcome.UNUSABLE: "do not publish it; register another selector, and report it to the "
    "service's operator",
    Outcome.FAILED: "run the same command again later",
    Outcome.UNKNOWN: "if the entry has a selector, run the same command again; if not, ask the "
    "service's operator whether it is registered: if so, write its selector into the entry; if "
    "not, add --retry-unknown",
}
# Of each outcome, its exit code; in the order of the summary.
_OK = (Outcome.CREATED, Outcome.EXISTS, Outcome.PENDING, Outcome.RETIRED)
_EXIT_CODES = dict.fromkeys(_OK, ExitCode.OK) | dict.fromkeys(_HINTS, ExitCode.NO)
_EXIT_CODES |= dict.fromkeys((Outcome.FAILED, Outcome.UNKNOWN), ExitCode.SERVICE)


def with_zones(
    options: OutputOptions, results: Sequence[Result], reporter: Reporter,
    above: Callable[[str], str] = str,
) -> OutputOptions:  # fmt: skip
    """The options with the zones of these records; where DNS tells them, warns of wildcards.

    `above` gives the name to ask DNS for, if it is another.
    Raises UsageError for names outside the zones, or several zones without `--output-dir`;
    ServiceError where DNS gives no answer.
    """
    if not options.has_zones:
        return options
    fqdns = [record.fqdn for record in filter(None, map(publishable, results))]
    names = list(dict.fromkeys(map(above, fqdns)))
    if options.finds_zones:
        from dkimctl.dns.zones import find_zones

        if len(names) >= 100:  # which may take longer than a second
            reporter.note(f"dkimctl: looking up the zones of {len(names)} names in DNS")
        options = options._replace(zones=sorted(set(find_zones(names).values())))
    zones = options.zones if options.origin is None else [options.origin]
    find_zone = zone_finder(zones)
    zone_of = {name: find_zone(name) for name in names}
    if outside := [name for name, zone in zone_of.items() if zone is None]:
        raise outside_zones(outside, zones)
    different = sorted(filter(None, set(zone_of.values())))
    if options.is_per_zone and len(different) > 1 and options.output_dir is None:
        hint = "name a directory with --output-dir, or select the domains of one zone"
        if options.fmt is Format.ZONE:
            hint += "; without zones, names are absolute, in one file"
        text = f"the result is a file for each of {len(different)} zones: {listed(different)}"
        raise UsageError(text, hint=hint)
    if not options.finds_zones:
        return options
    from dkimctl.cli.checking import warn_of_wildcards  # DNS, which others do not need

    shadowing = warn_of_wildcards(reporter, {name: find_zone(name) or "" for name in fqdns})
    return options._replace(add_first=shadowing)


def write_results(
    results: Iterable[Result], options: OutputOptions, reporter: Reporter, *,
    must_arrive: bool = False,
) -> None:  # fmt: skip
    """Write only results; those that `must_arrive`, through no pager. Raises OutputError."""
    renderer = _open_renderer(options, table_layout(reporter, options.output))
    is_paged = options.fmt is Format.TABLE and not must_arrive
    chunks = render_all(renderer, results)
    write_chunks(chunks, options.output, must_arrive=must_arrive, is_paged=is_paged)


def at_targets(
    results: Iterable[Result], fmt: Format, pool_of: Callable[[str], Pool | None]
) -> Iterator[Result]:
    """In formats that DNS reads, the record of a delegated key is where its CNAME leads."""
    for result in results:
        domain, selector = result.registration.key
        record, pool = result.registration.record, None if fmt in NOT_FOR_DNS else pool_of(domain)
        if record is not None and pool is not None and selector in pool.names():
            record = record._replace(fqdn=pool.target_of(domain, selector))
            yield result._replace(registration=result.registration._replace(record=record))
        else:
            yield result


def show(
    results: Iterable[Result], options: OutputOptions, reporter: Reporter, pending: str = "", *,
    is_plan: bool = False, expected: int = 0, shown_by: str = "--format table",
    in_background: bool = False,
) -> Shown:  # fmt: skip
    """Show results as they come, warn of what needs attention, and sum up (see `summary`).

    Of more than 200 `expected` results on a terminal only those that need attention are shown,
    unless the format was named; `shown_by` shows all. For errors on the way, see `write_chunks`.
    """
    is_table = options.fmt is Format.TABLE
    is_cut = options.is_default and not reporter.verbose
    layout = table_layout(reporter, options.output)._replace(
        only_attention=is_cut and options.is_on_terminal and expected > LONG_TABLE,
        shown_by=shown_by, most_alike=MAX_ALIKE if is_cut else None, is_plan=is_plan,
    )  # fmt: skip
    renderer = _open_renderer(options, layout)
    warnings, counts = AttentionWarnings(reporter), Counter[Outcome]()

    def counted() -> Iterator[Result]:
        for result in results:
            if not is_table:  # which shows the reasons itself
                warnings.add(result)
            counts[result.outcome] += 1
            yield result

    failure = None
    try:
        if options.is_per_zone and isinstance(renderer, PerZoneRenderer):
            deque(map(renderer.add, counted()), maxlen=0)
            _write_zone_files(renderer, options, reporter)
        else:
            chunks = render_all(renderer, counted())
            write_chunks(chunks, options.output, in_background=in_background, is_paged=is_table)
    except OutputError as error:
        failure = error
    warnings.close()
    reporter.summarize(summary(counts, pending), counts)
    for outcome, hint in _HINTS.items():
        if is_table and counts[outcome]:
            reporter.note(f"dkimctl: {outcome}: {hint}")
    if failure is not None:
        reporter.error(failure)
    return Shown(counts, failure)


class Shown(NamedTuple):
    """How many results of each outcome there were, and why they could not be written, if so."""

    counts: Counter[Outcome]
    failure: OutputError | None

    @property
    def status(self) -> ExitCode:
        """The exit code of the worst outcome."""
        codes = [_EXIT_CODES[outcome] for outcome in self.counts]
        return worst([*codes, *([self.failure.exit_code] if self.failure else [])])


def _open_renderer(options: OutputOptions, layout: TableLayout) -> Renderer[Result]:
    renderer = open_results(
        options.fmt, ttl=options.ttl, origin=options.origin, zones=options.zones,
        provider=options.provider, layout=layout._replace(wide=options.wide),
    )  # fmt: skip
    if isinstance(renderer, PerZoneRenderer):
        renderer.add_first = options.add_first
    return renderer


def summary(counts: Mapping[Outcome, int], pending: str = "") -> str:
    """How many domains came to what, such as "created 3, already there 2".

    `pending` is the word for those that are; without, they were only shown: "3 records".
    """
    words = {outcome: str(outcome) for outcome in _EXIT_CODES}
    words |= {Outcome.EXISTS: "already there", Outcome.PENDING: pending}
    parts = []
    if not pending:
        words = {outcome: word for outcome, word in words.items() if outcome not in USABLE}
        records = sum(counts.get(outcome, 0) for outcome in USABLE)
        parts = [counted(records, "record")] if records else []
    parts += [f"{word} {counts[outcome]}" for outcome, word in words.items() if counts.get(outcome)]
    return ", ".join(parts) or ("nothing to do" if pending else "no records")


class AttentionWarnings:
    """Warns of results that need attention; with --verbose or as JSON, of each when it is added."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._hinted: set[Outcome] = set()
        # By outcome, and reason without names: the results' names, each with its reason.
        self._alike: dict[Outcome, dict[str, dict[str, str]]] = {}

    def add(self, result: Result) -> None:
        outcome, name = result.outcome, named(result.registration)
        if outcome in _HINTS and self._reporter.most_alike is None:
            self._warn(outcome, f"{name}: {outcome}: {result.reason}")
        elif outcome in _HINTS:
            kind = without_names(result.reason, *result.registration.key)
            self._alike.setdefault(outcome, {}).setdefault(kind, {})[name] = result.reason

    def close(self) -> None:
        for outcome, kinds in self._alike.items():
            for kind, reasons in list(kinds.items())[:MAX_ALIKE]:
                same = {*reasons.values()}
                text = f"{outcome}: {same.pop() if len(same) == 1 else kind}"
                many = f"{text}: {len(reasons):,} ({listed([*reasons])})"
                self._warn(outcome, many if len(reasons) > 1 else f"{next(iter(reasons))}: {text}")
            if more := sum(map(len, list(kinds.values())[MAX_ALIKE:])):
                text = f"{outcome}: {more:,} more, for other reasons (--verbose lists all)"
                self._warn(outcome, text)

    def _warn(self, outcome: Outcome, text: str) -> None:
        hint = "" if outcome in self._hinted else _HINTS[outcome]  # the first time only
        self._hinted.add(outcome)
        self._reporter.warn(text, hint=hint, code=outcome)


def _write_zone_files(
    renderer: PerZoneRenderer, options: OutputOptions, reporter: Reporter
) -> None:
    """Write the files of `renderer`; without `output_dir`, the only one like `write_chunks`.

    Raises OutputError, and UsageError for records outside all zones.
    """
    files = list(renderer.files())
    if options.output_dir is not None:
        stems = {renderer.stem(zone) for zone in options.zones}
        _write_into(options.output_dir, files, renderer.suffix, stems, reporter)
    elif len(files) > 1:
        names = few([file.name for file in files])
        text = f"the result is {len(files)} files ({names}), which need a directory"
        raise OutputError(text, hint=f"name one with --output-dir; {KEPT}")
    else:
        write_chunks(renderer.end(), options.output)
        if files and options.output is not None:
            records = counted(files[0].records, "record")
            reporter.note(f"dkimctl: wrote {options.output} ({records})")
    with_records = {file.zone for file in files}
    if empty := [zone for zone in dict.fromkeys(options.zones) if zone not in with_records]:
        names = listed(empty, most=reporter.most_alike)
        reporter.note(f"dkimctl: no records, so nothing written, for {names}")


def _write_into(
    directory: Path, files: Sequence[ZoneFile], suffix: str, stems: Set[str], reporter: Reporter
) -> None:
    """Write the files there, warn of old ones of these zones, by their stems, and name others."""
    what, hint = f"cannot create the directory {directory}", "name another with --output-dir"
    with os_errors_as(OutputError, what, hint=f"{hint}; {KEPT}"):
        directory.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    try:
        for file in files:
            write_chunks(file.chunks, directory / file.name)
            written.append(f"{file.name} ({counted(file.records, 'record')})")
    finally:  # also after an error or Ctrl-C: these files are new, the others as they were
        if written:
            of = "" if len(written) == len(files) else f"{len(written)} of "
            text = f"dkimctl: wrote {of}{counted(len(files), 'file')} in {directory}"
            reporter.note(f"{text}: {listed(written, most=reporter.most_alike)}")
    try:
        names = {path.name for path in directory.iterdir()} - {file.name for file in files}
    except OSError:  # a directory may be writable and not readable
        return
    pattern = re.compile(rf"([\w-]+(?:\.[\w-]+)*?)(?:\.[0-9]+)?\.{re.escape(suffix)}", re.ASCII)
    stem_of = {match[0]: match[1] for match in map(pattern.fullmatch, sorted(names)) if match}
    outdated = [name for name, stem in stem_of.items() if stem in stems]
    # main.tf.json is about no zone.
    others = [name for name, stem in stem_of.items() if "." in stem and stem not in stems]
    if outdated:
        text = f"this run has no records for files of earlier runs in {directory}: "
        text += listed(outdated, most=reporter.most_alike)
        hint = "delete them, unless the selection left out their records"
        reporter.warn(text, hint=hint, code="outdated_file")
    if others:
        text = f"dkimctl: also in {directory}, and not written by this run"
        reporter.note(f"{text}: {listed(others, most=reporter.most_alike)}")
