"""Looks at DNS that are recorded in the ledger."""

from __future__ import annotations

from collections.abc import Container
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dkimctl.cli.session import Session
from dkimctl.dns.looks import Looks, recording_looks
from dkimctl.errors import LedgerError
from dkimctl.models.registration import RegistrationKey

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import RetirementPolicy
    from dkimctl.rotation.review import KnownKeys, Review


def recorded_looks(
    session: Session, counted: Container[RegistrationKey] | None = None
) -> AbstractContextManager[Looks]:
    """Looks that are recorded in the ledger at the end, of the keys in `counted` (None: of all).

    Warns if they cannot be.
    """
    return recording_looks(
        lambda: session.open_ledger(for_writing=True),
        on_failure=lambda error: warn_not_recorded(session, error),
        counted=counted,
    )


def warn_not_recorded(session: Session, error: LedgerError) -> None:
    session.reporter.warn(
        f"cannot record in the ledger which records are published: {error.message}",
        hint="`dkimctl rotate --retired` and `dkimctl ledger forget` depend on it",
        code=error.code,
    )


def review_now(session: Session, known: KnownKeys, policy: RetirementPolicy) -> Review:
    """Look at the successors in DNS, and record what is there."""
    from dkimctl.cli.options.checking import open_source
    from dkimctl.cli.progress import CheckProgress
    from dkimctl.dns.verdicts import Verdict
    from dkimctl.rotation.review import review_with_look

    progress = CheckProgress(session.reporter, Verdict.PUBLISHED, may_draw=True)
    with recorded_looks(session) as looks, progress:
        return review_with_look(
            known,
            policy,
            open_source,
            progress=progress,
            looks=looks,
            clock=lambda: datetime.now(UTC),
        )
