"""The zones that records are written for, from the options or from DNS."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dkimctl.cli.output.options import OutputOptions

_MANY = 100  # names, whose lookups may take longer than a second


def resolve_zones(
    output_options: OutputOptions,
    fqdns: Iterable[str],
    note: Callable[[str], None],
    *,
    for_plan: bool = False,
) -> OutputOptions:
    """The options for records of these names; with `--find-zones`, DNS is asked for the zones.

    `note` is told of lookups that may take a while. Raises UsageError for names outside the zones,
    or several zones without `--output-dir`; ServiceError where DNS gives no answer.
    """
    if not output_options.has_zones:
        return output_options
    output_options.require_zones_fit(for_plan=for_plan)
    names = list(fqdns)
    if output_options.finds_zones:
        from dkimctl.dns.nameservers import system_nameservers
        from dkimctl.dns.zones import find_zones

        if len(names) >= _MANY:
            note(f"dkimctl: looking up the zones of {len(names)} names in DNS")
        zones = find_zones(names, system_nameservers())
        output_options = output_options._replace(zones=sorted(set(zones.values())))
    output_options.require_zones_for(names)
    return output_options
