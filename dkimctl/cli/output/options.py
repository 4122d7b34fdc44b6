"""How results are written: the format, its zones, and the destination."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dkimctl.errors import UsageError, naming
from dkimctl.render.renderer import PER_ZONE, Format, Provider, outside_zones
from dkimctl.text.dns_names import zone_finder
from dkimctl.text.grouping import listed

_MANY = 100  # names, whose lookups may take longer than a second
_WITH_ZONES = (Format.ZONE, Format.NSUPDATE, *PER_ZONE)
_FITTING: Mapping[str, Sequence[Format]] = {
    "--origin": [Format.ZONE],
    "--provider": [Format.TERRAFORM],
    "--wide": [Format.TABLE],
    "--output-dir": _WITH_ZONES,
}
_EXCLUSIVE = (
    ("--output", "--output-dir"),
    ("--zone", "--find-zones"),
    ("--origin", "--zone"),
    ("--origin", "--find-zones"),
    ("--origin", "--output-dir"),
)


class OutputOptions(NamedTuple):
    """The output options of `register` and `show-dns`."""

    fmt: Format
    is_default: bool = False  # no format was named
    ttl: int = 3600  # seconds
    origin: str | None = None
    zones: Sequence[str] = ()  # A-labels in lower case, without trailing dot
    finds_zones: bool = False
    provider: Provider = Provider.ROUTE53
    output: Path | None = None
    output_dir: Path | None = None
    wide: bool = False

    @property
    def is_on_terminal(self) -> bool:
        """Whether the result is written to a terminal."""
        return self.output is None and self.output_dir is None and sys.stdout.isatty()

    @property
    def is_written_to_terminal_meanwhile(self) -> bool:
        """Whether results appear on the terminal one by one; a table is written at the end."""
        return self.is_on_terminal and self.fmt is not Format.TABLE

    @property
    def has_zones(self) -> bool:
        """Whether the records must lie in certain zones."""
        return self.finds_zones or self.origin is not None or bool(self.zones)

    def require_zones_fit(self, *, for_plan: bool = False) -> None:
        """Raise UsageError for zones where records are written without; a plan counts by zone."""
        fitting = (Format.TABLE,) if for_plan else _WITH_ZONES
        _require_fit("--zone", self.zones, self.fmt, fitting)
        _require_fit("--find-zones", self.finds_zones, self.fmt, fitting)

    @property
    def is_per_zone(self) -> bool:
        """Whether the result is one or more files for each zone."""
        match self.fmt:
            case Format.ZONE:
                return self.finds_zones or bool(self.zones)
            case Format.NSUPDATE:  # one script may be about several zones
                return self.output_dir is not None
            case _:
                return self.fmt in PER_ZONE


def read_output_options(
    *,
    fmt: Format | None,
    ttl: int,
    origin: str | None,
    zone: Sequence[str] | None,
    find_zones: bool,
    provider: Provider | None,
    output: Path | None,
    output_dir: Path | None,
    wide: bool,
) -> OutputOptions:
    """Check these options, and gather them. Raises UsageError."""
    output_options = OutputOptions(
        fmt=fmt or (Format.TABLE if wide else default_format(output or output_dir)),
        is_default=fmt is None,
        ttl=ttl,
        origin=None if origin is None else read_zone("--origin", origin),
        zones=[read_zone("--zone", name) for name in zone or ()],
        finds_zones=find_zones,
        provider=provider or Provider.ROUTE53,
        output=output,
        output_dir=output_dir,
        wide=wide,
    )
    given = {
        "--origin": origin, "--zone": zone, "--find-zones": find_zones, "--provider": provider,
        "--wide": wide, "--output": output, "--output-dir": output_dir,
    }  # fmt: skip
    for option, fitting in _FITTING.items():
        _require_fit(option, given[option], output_options.fmt, fitting)
    for one, other in _EXCLUSIVE:
        if given[one] and given[other]:
            raise UsageError(f"{one} cannot be combined with {other}", hint="remove one of them")
    if not output_options.has_zones and (output_dir is not None or output_options.fmt in PER_ZONE):
        option = f"--format {output_options.fmt}" if output_dir is None else "--output-dir"
        raise UsageError(
            f"{option} needs the zones of your DNS",
            hint="name each with --zone ZONE, or look them up in DNS with --find-zones",
        )
    return output_options


def default_format(output: Path | None, *, for_machines: Format = Format.ZONE) -> Format:
    """A table on a terminal, `for_machines` for a pipe or a file."""
    return Format.TABLE if output is None and sys.stdout.isatty() else for_machines


def _require_fit(option: str, value: object, fmt: Format, fitting: Iterable[Format]) -> None:
    if value and fmt not in fitting:
        names = ", ".join(sorted(fitting))
        raise UsageError(f"{option} has no effect with --format {fmt}", hint=f"it is for {names}")


def read_zone(option: str, text: str) -> str:
    """A zone's name. Raises UsageError that names the option."""
    from dkimctl.specs.names import parse_zone

    with naming(option):
        return parse_zone(text)


def resolve_zones(
    options: OutputOptions,
    fqdns: Iterable[str],
    note: Callable[[str], None],  # is told of lookups that may take a while
    *,
    for_plan: bool = False,
) -> OutputOptions:
    """The options for records of these names; with `--find-zones`, DNS is asked for the zones.

    Raises UsageError for names outside the zones, or several zones without `--output-dir`;
    ServiceError where DNS gives no answer.
    """
    if not options.has_zones:
        return options
    options.require_zones_fit(for_plan=for_plan)
    names = list(fqdns)
    if options.finds_zones:
        from dkimctl.dns.nameserver import system_nameservers
        from dkimctl.dns.zones import find_zones

        if len(names) >= _MANY:
            note(f"dkimctl: looking up the zones of {len(names)} names in DNS")
        found = find_zones(names, system_nameservers())
        options = options._replace(zones=sorted(set(found.values())))
    zones = options.zones if options.origin is None else [options.origin]
    find_zone = zone_finder(zones)
    zone_of = {name: find_zone(name) for name in names}
    if outside := [name for name, zone in zone_of.items() if zone is None]:
        raise outside_zones(outside, zones)
    different = sorted({zone for zone in zone_of.values() if zone is not None})
    if options.is_per_zone and len(different) > 1 and options.output_dir is None:
        absolute = "; without zones, names are absolute, in one file"
        raise UsageError(
            f"the result is a file for each of {len(different)} zones: {listed(different)}",
            hint="name a directory with --output-dir, or select the domains of one zone"
            + (absolute if options.fmt is Format.ZONE else ""),
        )
    return options
