"""A check of DNS as commands make it: whom to ask, what is expected, and what is recorded."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dkimctl.cli.options import read_duration
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.checks import CheckSink
from dkimctl.cli.progress import CheckProgress
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import ending_like_ctrl_c
from dkimctl.dns.verdicts import Check, Looks, Verdict, recording_looks
from dkimctl.errors import ExitCode, Interrupted, LedgerError, UsageError
from dkimctl.models.registration import Registration, RegistrationKey

if TYPE_CHECKING:
    from dkimctl.dns.check import CheckPolicy
    from dkimctl.dns.queries import Source
    from dkimctl.rotation.retirement import KnownKeys, RetirementPolicy, Review

# Unless an option says otherwise.
MAX_IN_FLIGHT = 64
WARN_WITHIN = "2d"
SERVERS_PANEL = "Servers"

ServerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="IP[:PORT]",
        help="Ask only this server; repeatable (default: every authoritative server).",
        rich_help_panel=SERVERS_PANEL,
    ),
]
ResolverOption = Annotated[
    bool,
    typer.Option(
        "--resolver",
        help="Ask only the system's resolver, whose cache may be out of date.",
        rich_help_panel=SERVERS_PANEL,
    ),
]


def open_source(
    servers: Sequence[str] = (), resolver: bool = False, max_in_flight: int = MAX_IN_FLIGHT
) -> Source:
    """The servers that these options name. Raises UsageError; ServiceError without a resolver."""
    from dkimctl.dns.nameserver import system_nameservers
    from dkimctl.dns.queries import authoritative, given, recursive
    from dkimctl.text.addresses import parse_address

    if servers and resolver:
        raise UsageError("--server cannot be combined with --resolver", hint="remove one of them")
    if servers:
        return given([parse_address(text) for text in servers], max_in_flight)
    if resolver:
        return recursive(system_nameservers(), max_in_flight)
    return authoritative(system_nameservers(), max_in_flight)


def read_policy(wait: str | None, warn_within: str, *, expect_absent: bool) -> CheckPolicy:
    """What these options ask for. Raises UsageError."""
    from dkimctl.dns.check import CheckPolicy

    return CheckPolicy(
        0.0 if wait is None else read_duration("--wait", wait).total_seconds(),
        read_duration("--warn-within", warn_within, may_be_zero=True),
        expect_absent,
    )


def recorded_looks(
    session: Session, counted: Container[RegistrationKey] | None = None
) -> AbstractContextManager[Looks]:
    """Looks at keys in `counted` (None: all), recorded at the end; warns if they cannot be."""
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
    from dkimctl.rotation.retirement import review_with_look

    progress = CheckProgress(session.reporter, Verdict.PUBLISHED)
    with recorded_looks(session) as looks, progress:
        return review_with_look(
            known,
            policy,
            open_source,
            progress=progress,
            looks=looks,
            clock=lambda: datetime.now(UTC),
        )


class Proof(NamedTuple):
    """What DNS has after a change, and the exit code of `check-dns`."""

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
    from dkimctl.dns.check import check_publication

    policy = read_policy(wait, WARN_WITHIN, expect_absent=False)
    progress = CheckProgress(session.reporter, policy.wanted)
    checks: dict[RegistrationKey, Check] = {}

    def emit(check: Check) -> None:
        checks[check.key] = check
        sink.emit(check)

    sink = CheckSink(
        None, None, session.reporter, wanted=policy.wanted, selection=selection,
        is_shown=is_shown, has_targets=True, is_written=True,
    )  # fmt: skip
    try:
        with ending_like_ctrl_c(), recorded_looks(session) as looks, sink:
            with progress:
                check_publication(
                    registrations, open_source(), policy, emit, progress=progress, looks=looks
                )
            status = sink.close()
    except KeyboardInterrupt:
        hint = "the changes were made; to check again: `dkimctl check-dns`"
        raise Interrupted(hint=hint) from None
    if status is not ExitCode.OK and not is_shown:
        session.reporter.note(f"dkimctl: for the details: {next_steps.check(selection)}")
    return Proof(status, checks)
