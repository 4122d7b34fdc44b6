"""Make the changes of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dkimctl.publishing.changes import Applied
from dkimctl.publishing.parallel import work_in_parallel
from dkimctl.publishing.planning import PublicationPlan, ZonePlan

_AT_ONCE = 500  # changes that are begun before it looks whether to stop


def apply_plan(
    plan: PublicationPlan,
    emit: Callable[[Applied], None],
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    wait: Callable[[], None] = lambda: None,
) -> None:
    """Make the changes, several zones at a time; emits what became of each, in this thread.

    After `is_stopped` no further changes are begun; what became of those that were is emitted.
    `wait` is called five times a second while there is nothing to emit.
    """

    def changes_of(zone: ZonePlan) -> Iterator[Applied]:
        changes = zone.to_apply
        for at in range(0, len(changes), _AT_ONCE):
            if is_stopped():
                return
            yield from zone.target.apply(zone.zone, changes[at : at + _AT_ONCE])

    work_in_parallel((one for one in plan.zones if one.to_apply), changes_of, emit, wait=wait)
