"""Check, after a change, that DNS has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.cli.interruption import ending_like_ctrl_c
from dkimctl.cli.looks import recorded_looks
from dkimctl.cli.options.checking import WARN_WITHIN, open_source, read_policy
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.checks import CheckSink
from dkimctl.cli.output.destination import NullWriter
from dkimctl.cli.progress import CheckProgress
from dkimctl.cli.session import Session
from dkimctl.dns.verdicts import Check
from dkimctl.errors import ExitCode, Interrupted
from dkimctl.models.registration import Registration, RegistrationKey

if TYPE_CHECKING:
    from dkimctl.dns.check import CheckPolicy


class Proof(NamedTuple):
    """What DNS has, and the exit code of `check-dns`."""

    status: ExitCode
    checks: Mapping[RegistrationKey, Check]


def check_records(
    session: Session,
    registrations: Sequence[Registration],
    wait: str,
    *,
    is_shown: bool,
    selection: Sequence[str],
) -> Proof:
    """Do what `check-dns --wait` does for just these; `is_shown`: with its table on stdout."""
    try:
        with ending_like_ctrl_c():
            return _check(
                session, registrations, read_policy(wait, WARN_WITHIN, expect_absent=False),
                selection, is_shown=is_shown,
            )  # fmt: skip
    except KeyboardInterrupt:
        hint = "the changes were made; to check again: `dkimctl check-dns`"
        raise Interrupted(hint=hint) from None


def _check(
    session: Session,
    registrations: Sequence[Registration],
    policy: CheckPolicy,
    selection: Sequence[str],
    *,
    is_shown: bool,
) -> Proof:
    from dkimctl.dns.check import check_publication

    progress = CheckProgress(session.reporter, policy.wanted, may_draw=True)
    checks: dict[RegistrationKey, Check] = {}

    def emit(check: Check) -> None:
        checks[check.key] = check
        sink.emit(check)

    sink = CheckSink(
        None, None, session.reporter, wanted=policy.wanted, selection=selection,
        writer=None if is_shown else NullWriter(), has_targets=True,
        is_written=True,
    )  # fmt: skip
    with recorded_looks(session) as looks, sink:
        with progress:
            check_publication(
                registrations, open_source(), policy, emit, progress=progress, looks=looks
            )
        status = sink.close()
    if status is not ExitCode.OK and not is_shown:
        session.reporter.note(f"dkimctl: for the details: {next_steps.check(selection)}")
    return Proof(status, checks)
