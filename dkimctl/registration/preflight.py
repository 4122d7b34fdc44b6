"""What to know before entries are sent: which of them are refused, and warnings about others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dkimctl.errors import UsageError
from dkimctl.models.registration import DomainSpec, named
from dkimctl.specs.advice import doubtful, signs_by, warnings
from dkimctl.text.escaping import few
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from dkimctl.registration.planning import Planner


def inspect_entries(specs: Iterable[DomainSpec], planner: Planner, now: datetime) -> list[str]:
    """Warnings about those of `specs` that must be sent.

    Raises UsageError for successors that would sign at once, without a record in DNS. One that an
    earlier run sent without an answer is not refused: it may be registered.
    """
    in_doubt = list(doubtful(specs, now))
    if not in_doubt:
        return []  # without reading the ledger
    new = planner.new_entries(in_doubt)
    late = [
        spec
        for spec in new
        if spec.replaces is not None and signs_by(spec, now) and not planner.is_in_doubt(spec)
    ]
    if late:
        raise _too_late(late)
    return warnings(new, now)


def _too_late(specs: Sequence[DomainSpec]) -> UsageError:
    return UsageError(
        f"{counted(len(specs), 'successor')} would sign at once, before DNS has the record, since "
        f"the start_date is not in the future: {few([named(spec) for spec in specs])}; "
        "nothing was sent",
        hint="get specs with a new start_date from `dkimctl rotate > successors.yaml`, and "
        "register those; for keys that another machine has registered, remove replaces:",
    )
