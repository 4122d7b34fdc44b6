"""The plan of octoDNS for our changes, and for nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dkimctl.errors import DkimctlError, NegativeAnswer, ServiceError
from dkimctl.publishing.changes import Change, changed_error
from dkimctl.publishing.providers.zone_contents import text_of
from dkimctl.text.escaping import few, printable


def unfit_value(change: Change) -> DkimctlError | None:
    """Why octoDNS cannot hold the value; it has no form for some, which DKIM does not use."""
    value = change.value or ""
    if value.isascii() and value.isprintable() and not {'"', "\\"}.intersection(value):
        return None
    return NegativeAnswer(
        f"octoDNS has no form for the value at {printable(change.record.fqdn)}",
        hint="publish it by hand: `dkimctl show-dns` has it",
    )


def make_plan(provider: Any, existing: Any, changes: Sequence[Change]) -> Any:
    """The plan for these changes to the zone `existing`, which is left as it is.

    Providers see only our names when they plan: by exact name and by type, on both sides. The plan
    that they apply has the whole zone beside our changes, since some write all of it. Thresholds of
    octoDNS are for its own command. Raises DkimctlError.
    """
    from octodns.processor.filter import NameAllowlistFilter, TypeAllowlistFilter
    from octodns.provider.plan import Plan

    if getattr(provider, "apply_disabled", False):
        raise NegativeAnswer(
            "`apply_disabled` is set for the provider",
            hint="remove it from `settings` of `dns` in the config file",
        )
    wanted = {change.record.fqdn.lower(): change for change in changes}
    desired = _desired(existing, wanted)
    names = [existing.hostname_from_fqdn(f"{name}.") for name in wanted]
    filters = [NameAllowlistFilter("names", names), TypeAllowlistFilter("types", ["TXT"])]
    ours = desired.copy()
    for one in filters:
        ours = one.process_source_zone(ours, [])
    plan = provider.plan(ours, processors=filters)
    planned = list(plan.changes) if plan else []
    _require_ours(planned, wanted)
    return Plan(existing, desired, planned, exists=True)


def make_rewriting_plan(_provider: Any, existing: Any, changes: Sequence[Change]) -> Any:
    """The plan that writes what is at our names once more, split into strings by octoDNS."""
    from octodns.provider.plan import Plan
    from octodns.record import Update

    names = {change.record.fqdn.lower() for change in changes}
    records = [one for one in existing.records if one._type == "TXT" and _name(one) in names]
    return Plan(existing, existing, [Update(one, one) for one in records], exists=True)


def _desired(existing: Any, wanted: Mapping[str, Change]) -> Any:
    """The zone after the changes."""
    from octodns.record import Record

    desired = existing.copy()
    for record in existing.records:
        if record._type == "TXT" and _name(record) in wanted:
            desired.remove_record(record)
    for name, change in wanted.items():
        if change.value is not None:
            data = {"type": "TXT", "ttl": change.ttl, "value": change.value.replace(";", "\\;")}
            hostname = existing.hostname_from_fqdn(f"{name}.")
            desired.add_record(Record.new(desired, hostname, data, lenient=True), lenient=True)
    return desired


def _require_ours(planned: Sequence[Any], wanted: Mapping[str, Change]) -> None:
    """Raise unless each change is planned once as it is wanted, and nothing else is."""
    seen = set()
    for one in planned:
        name = _name(one.record)
        change = wanted.get(name)
        if change is None or one.record._type != "TXT" or name in seen:
            raise ServiceError(
                f"the provider would also change {one.record._type} at {printable(name)}",
                hint="nothing was changed; publish by hand: see `dkimctl show-dns`",
            )
        seen.add(name)
        if sorted(_values(one.existing)) != sorted(change.before.values):
            raise changed_error(change)
        if _values(one.new) != (() if change.value is None else (change.value,)):
            raise ServiceError(
                f"the provider would publish another value at {printable(name)}",
                hint="nothing was changed; publish by hand: see `dkimctl show-dns`",
            )
    if missing := sorted(wanted.keys() - seen):
        raise ServiceError(
            f"the provider plans no change of TXT at {printable(few(missing))}",
            hint="nothing was changed; run the same command again",
        )


def _values(record: Any) -> tuple[str, ...]:
    return text_of(record) if record else ()


def _name(record: Any) -> str:
    return str(record.fqdn).rstrip(".").lower()
