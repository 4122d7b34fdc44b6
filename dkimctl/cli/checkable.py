"""The registrations that `check-dns` checks, from the ledger or from a saved result."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from dkimctl.cli.looks import warn_not_recorded
from dkimctl.cli.output.streams import AlikeWarnings, Reporter
from dkimctl.cli.selection import registered_results, saved_results
from dkimctl.cli.session import Session
from dkimctl.dns.looks import same_records
from dkimctl.errors import ExitCode, LedgerError, UsageError
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import Outcome, Registration, RegistrationKey, Result, named
from dkimctl.render.renderer import sound_record
from dkimctl.text.grouping import without_names


class Checkable:
    """The registrations of `results` that have a record to check; it warns about the others.

    `retired`: the keys whose records may be gone, each with the reason. `counted`: the keys whose
    looks are recorded in the ledger; None: all. `status`: the exit code, as far as
    `registrations` has been iterated over. `left_out` says what becomes of the others.
    """

    def __init__(
        self,
        results: Iterable[Result],
        reporter: Reporter,
        *,
        retired: Mapping[RegistrationKey, str],
        counted: Container[RegistrationKey] | None = None,
        status: ExitCode = ExitCode.OK,
        left_out: str = "not checked",
    ) -> None:
        self._left_out = left_out
        self.registrations = self._with_record(results, reporter)
        self.retired = retired
        self.counted = counted
        self.status = status

    def _with_record(self, results: Iterable[Result], reporter: Reporter) -> Iterator[Registration]:
        warnings = AlikeWarnings(reporter)
        for result in results:
            if sound_record(result) is not None:
                yield result.registration
                continue
            name, why = named(result.registration), f"{result.outcome}: {result.reason}"
            kind = f"{self._left_out}: {without_names(why, *result.registration.key)}"
            warnings.warn(f"{name} is {self._left_out}: {why}", kind=kind, code=result.outcome)
            self.status = ExitCode.NO
        warnings.close()


def select_checkable(
    session: Session, selection: Selection, saved: str | None, *, recorded: bool
) -> Checkable:
    """What is selected of the file `saved`, or of the ledger; `recorded`: looks are.

    Raises like `registered_results`.
    """
    if saved is None:
        registered = registered_results(session, selection)
        retired = retired_keys(session)
        every = None if recorded else ()
        return Checkable(registered, session.reporter, retired=retired, counted=every)
    from_file, status = saved_results(session, saved, selection)
    results = list(from_file)
    sound = [one.registration for one in results if sound_record(one)]
    retired = {
        one.registration.key: one.reason for one in results if one.outcome is Outcome.RETIRED
    }
    counted = _keys_to_record(session, sound) if recorded else set()
    return Checkable(results, session.reporter, retired=retired, counted=counted, status=status)


def _keys_to_record(session: Session, saved: Iterable[Registration]) -> set[RegistrationKey]:
    """The keys of a saved result that the ledger has with the same record."""
    try:
        return same_records(session.open_ledger(for_writing=False), saved)
    except LedgerError as error:
        warn_not_recorded(session, error)
    except UsageError:  # no account is set up, and a saved result needs none
        pass
    return set()


def retired_keys(session: Session) -> Mapping[RegistrationKey, str]:
    """The keys of the ledger whose records may be gone, each with the reason."""
    from dkimctl.rotation.retirement import keys_past_grace

    ledger = session.open_ledger(for_writing=False)
    domains = ledger.rotated_domains()
    if not domains:
        return {}
    rotated = [one for one in ledger.all() if one.key.sign_domain in domains]
    grace = session.config.rotation.grace
    reasons = keys_past_grace(rotated, ledger.histories(), datetime.now(UTC), grace)
    return {key: session.reporter.complete(reason) for key, reason in reasons.items()}
