"""What a run asks of the service, under the lock of the account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import DkimctlError
from dkimctl.rotation.retirement import RetirementStatus
from dkimctl.rotation.review import KnownKeys
from dkimctl.rotation.run.due import find_due
from dkimctl.rotation.run.refreshing import Refreshed, deciding_successors, refresh
from dkimctl.rotation.run.registering import Registered, planned, register_due
from dkimctl.rotation.run.tools import RunPolicy, Tools

if TYPE_CHECKING:
    from dkimctl.ledger.selection import Selection


class ServiceAnswers(NamedTuple):
    """The successors that were registered, and what the service says of earlier ones."""

    registered: Registered
    refreshed: Refreshed

    @property
    def error(self) -> DkimctlError | None:
        return self.registered.error or self.refreshed.error


def ask_service(
    selection: Selection,
    known: KnownKeys,
    statuses: Sequence[RetirementStatus],
    policy: RunPolicy,
    tools: Tools,
) -> ServiceAnswers:
    """Register the successors that are due, and refresh those of keys past the grace period.

    Nothing is locked or sent if there are none. Raises LedgerError, Interrupted.
    """
    now = tools.clock()
    due = find_due(tools.open_ledger(for_writing=False), selection, policy.rotation, now)
    successors = deciding_successors(statuses)
    if policy.is_dry or not (due.specs or successors):
        keys = frozenset(one.key for one in successors)
        return ServiceAnswers(planned(due), Refreshed(keys))
    with tools.lock_account(), tools.open_ledger(for_writing=True) as ledger:
        now = tools.clock()  # it may have waited for long
        registered = register_due(ledger, selection, policy, tools, now)
        if registered.error is not None:
            return ServiceAnswers(registered, Refreshed(error=registered.error))
        refreshed = refresh(successors, known.histories, ledger, policy, tools, now)
    return ServiceAnswers(registered, refreshed)
