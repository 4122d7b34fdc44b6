"""Entries sent to the service by the engine of `register`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from dkimctl.errors import DkimctlError, Interrupted, LedgerError, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec, Outcome, Result
from dkimctl.registration import outcomes
from dkimctl.registration.engine import RegistrationRun
from dkimctl.registration.preflight import Planner
from dkimctl.rotation.run.tools import Tools


class Sent(NamedTuple):
    """A result for each entry. `error`: what ended the run early, if anything.

    `begun_early` are the names of new keys that sign already, before they were to.
    """

    results: Sequence[Result]
    error: DkimctlError | None = None
    begun_early: Sequence[str] = ()


def send(
    specs: Sequence[DomainSpec], ledger: Ledger, tools: Tools, now: datetime, *, refresh: bool
) -> Sent:
    """Send these entries, each with a selector; `refresh`: also those that are registered.

    To be called under the lock of the account. Raises LedgerError and Interrupted.
    """
    if not specs:
        return Sent(())
    results: list[Result] = []
    with tools.observing(len(specs)) as observer:
        run = RegistrationRun(
            specs,
            ledger,
            Planner(ledger, refresh=refresh, now=now),
            tools.connect,
            observer=observer,
            warn=tools.warn,
            limits=tools.limits,
        )
        for text in run.prepare(now):
            tools.warn(text)
        with tools.stopping(run.stop):
            error = _execute(run, results)
    if isinstance(error, (Interrupted, LedgerError)):
        raise error
    known = {result.registration.key for result in results}
    left = [outcomes.pending(spec, "it was not sent") for spec in specs if spec.key not in known]
    if error is None and any(one.outcome is Outcome.PENDING for one in results):
        error = ServiceError("the service kept throttling (429)")
    return Sent([*results, *left], error, run.begun_early)


def _execute(run: RegistrationRun, results: list[Result]) -> DkimctlError | None:
    try:
        run.execute(results.append)
    except DkimctlError as error:
        if error is not run.stopped:
            raise
    return run.stopped
