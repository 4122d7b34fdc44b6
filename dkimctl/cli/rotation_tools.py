"""The ledger, the service and DNS, for `rotate run`."""

from __future__ import annotations

from datetime import UTC, datetime

from dkimctl.cli.checking import open_source
from dkimctl.cli.progress import CheckProgress, RegistrationProgress
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import stopping
from dkimctl.publishing.targets import open_targets
from dkimctl.rotation.due import Tools


def tools_of(session: Session) -> Tools:
    """What a run of the session's profile works with."""
    verbose = session.flags["verbose"]

    return Tools(
        open_ledger=session.open_ledger,
        lock_account=session.lock_account,
        connect=session.connect,
        limits=session.limits,
        open_targets=lambda: open_targets(session.config, session.profile.name, session.secrets),
        open_source=open_source,
        warn=lambda text: session.reporter.warn(session.reporter.complete(text)),
        stopping=stopping,
        observing=lambda total: RegistrationProgress(
            total, session.reporter, verbose=verbose, may_draw=True
        ),
        watching=lambda wanted: CheckProgress(session.reporter, wanted, may_draw=True),
        clock=lambda: datetime.now(UTC),
    )
