"""Looks at DNS and the ledger: which are recorded, and which records may be gone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dkimctl.cli.session import Session
from dkimctl.errors import DkimctlError, LedgerError
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.publication.looks import Looks, recording_looks, same_records

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import RetirementPolicy
    from dkimctl.rotation.review import KnownKeys, Review


def recorded_looks(
    session: Session, counted: Container[RegistrationKey] | None = None
) -> AbstractContextManager[Looks]:
    """Looks that are recorded in the ledger at the end, of the keys in `counted` (None: of all).

    Warns if they cannot be.
    """

    def warn(error: LedgerError) -> None:
        session.reporter.warn(
            f"cannot record in the ledger which records are published: {error.message}",
            hint="`dkimctl rotate --retired` depends on it",
            code=error.code,
        )

    return recording_looks(
        lambda: session.open_ledger(for_writing=True), on_failure=warn, counted=counted
    )


def keys_to_record(session: Session, saved: Iterable[Registration]) -> set[RegistrationKey]:
    """The keys of a saved result that the ledger has with the same record; a result needs none."""
    try:
        return same_records(session.open_ledger(for_writing=False), saved)
    except DkimctlError:
        return set()


def retired_keys(session: Session) -> Mapping[RegistrationKey, str]:
    """The keys of the ledger whose records may be gone, each with the reason."""
    from dkimctl.rotation.retirement import keys_past_grace

    ledger = session.open_ledger(for_writing=False)
    domains = ledger.rotated_domains()
    if not domains:
        return {}
    rotated = [one for one in ledger.all() if one.key.sign_domain in domains]
    return keys_past_grace(rotated, ledger.histories(), datetime.now(UTC))


def review_now(session: Session, known: KnownKeys, policy: RetirementPolicy) -> Review:
    """Look at the successors in DNS, and record what is there."""
    from dkimctl.cli.options.checking import MAX_IN_FLIGHT, open_source
    from dkimctl.cli.progress.checking import CheckProgress
    from dkimctl.publication.verdicts import Verdict
    from dkimctl.rotation.review import review_with_look

    progress = CheckProgress(session.reporter, Verdict.PUBLISHED, may_draw=True)
    with recorded_looks(session) as looks, progress:
        return review_with_look(
            known,
            policy,
            lambda: open_source((), resolver=False, max_in_flight=MAX_IN_FLIGHT),
            progress=progress,
            looks=looks,
            clock=lambda: datetime.now(UTC),
        )
