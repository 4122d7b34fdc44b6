"""All checks, one after the other: one that fails, or takes too long, does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from dkimctl.cli.doctor_checks import (
    Finding,
    State,
    check_auth_url,
    check_base_url,
    check_config,
    check_credentials,
    check_keys,
    check_ledger,
    check_libraries,
    check_notices,
    check_profile,
    check_python,
    check_service_extra,
    check_token,
    wrong,
)
from dkimctl.cli.doctor_dns import check_ipv6, check_resolver, check_targets
from dkimctl.cli.session import Session
from dkimctl.errors import DkimctlError
from dkimctl.system.threads import StartThread, start_daemon
from dkimctl.text.durations import format_duration

_SECONDS = 60.0
_FAILED = (State.WRONG, State.UNKNOWN, State.NOT_CHECKED)


class Check(NamedTuple):
    """A check, which is not tried if one that it `needs` has failed.

    `also` are other names under which it reports; `seconds` is the longest that it may take.
    """

    name: str
    find: Callable[[Session], Iterator[Finding]]
    needs: tuple[str, ...] = ()
    is_online: bool = False
    in_sandbox: bool = True
    outside_sandbox: bool = True
    also: tuple[str, ...] = ()
    seconds: float = _SECONDS


_CONFIG, _PROFILE = ("config file",), ("config file", "profile")
CHECKS = (
    Check("python", check_python),
    Check("libraries", check_libraries),
    Check("embedded service", check_service_extra, outside_sandbox=False),
    Check("config file", check_config),
    Check("profile", check_profile, _CONFIG),
    Check("auth URL", check_auth_url, _PROFILE, is_online=True, in_sandbox=False),
    Check(
        "base URL", check_base_url, _PROFILE, is_online=True, in_sandbox=False, also=("clock",)
    ),
    # On a terminal, a keyring has a minute to be unlocked, for each of several calls.
    Check("credentials", check_credentials, _PROFILE, in_sandbox=False, seconds=2 * _SECONDS),
    Check(
        "token", check_token, (*_PROFILE, "auth URL", "credentials"), is_online=True,
        in_sandbox=False,
    ),
    Check("ledger", check_ledger, _PROFILE),
    Check("resolver", check_resolver, is_online=True),
    Check("IPv6", check_ipv6, is_online=True),
    Check("DNS targets", check_targets, (*_PROFILE, "ledger"), is_online=True),
    Check("keys", check_keys, (*_PROFILE, "ledger"), also=("timer",)),
    Check("notices", check_notices, _CONFIG),
)  # fmt: skip


def examine(
    session: Session,
    *,
    offline: bool,
    checks: Iterable[Check] = CHECKS,
    start_thread: StartThread = start_daemon,
) -> Iterator[Finding]:
    """What each check finds, as soon as it has ended; `offline` leaves out what sends anything."""
    failed: set[str] = set()
    is_sandbox = _is_sandbox(session)
    for check in checks:
        if not (check.in_sandbox if is_sandbox else check.outside_sandbox):
            continue
        for finding in _findings(session, check, failed, offline, start_thread):
            if finding.state in _FAILED:
                failed.add(finding.check)
            yield finding


def _findings(
    session: Session, check: Check, failed: set[str], offline: bool, start_thread: StartThread
) -> list[Finding]:
    if offline and check.is_online:
        return _not_checked(check, "it needs the network (--offline)")
    for name in check.needs:
        if name in failed:
            return _not_checked(check, f"it depends on: {name}")
    return _bounded(session, check, start_thread)


def _not_checked(check: Check, why: str) -> list[Finding]:
    return [Finding(name, State.NOT_CHECKED, why) for name in (check.name, *check.also)]


def _bounded(session: Session, check: Check, start_thread: StartThread) -> list[Finding]:
    """What the check finds within its time, in a thread of its own, which may hang."""
    found: list[Finding] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            found.extend(check.find(session))
        except Exception as error:  # noqa: BLE001 - a check that breaks is not the end of others
            failures.append(error)

    thread = start_thread(work, f"doctor: {check.name}")
    if thread is None:
        return [Finding(check.name, State.UNKNOWN, "the system does not allow another thread")]
    thread.join(check.seconds)
    if thread.is_alive():
        limit = format_duration(check.seconds)
        return [Finding(check.name, State.UNKNOWN, f"no answer within {limit}")]
    if not failures:
        return found
    reported = {finding.check for finding in found}
    rest = [name for name in check.also if name not in reported]
    why = f"it depends on: {check.name}"
    return [*found, _failure(check, failures[0]),
            *(Finding(name, State.NOT_CHECKED, why) for name in rest)]  # fmt: skip


def _failure(check: Check, error: Exception) -> Finding:
    if isinstance(error, DkimctlError):
        return wrong(check.name, error)
    # Without its own text, which may contain anything.
    text = f"the check itself failed: {type(error).__name__}"
    return Finding(check.name, State.UNKNOWN, text, "report it as a defect of dkimctl")


def _is_sandbox(session: Session) -> bool:
    with suppress(DkimctlError):
        return session.profile.is_sandbox
    return bool(session.flags["sandbox"])
