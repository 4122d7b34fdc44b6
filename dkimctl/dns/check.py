"""Check registrations in DNS, many at the same time, in one round or several."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple, Protocol, Self

from dkimctl.dns.looks import Looks
from dkimctl.dns.queries import Source
from dkimctl.dns.registration_check import RegistrationCheck
from dkimctl.dns.verdicts import Check, Finding, Verdict, is_good, urgency_of
from dkimctl.models.registration import Registration, RegistrationKey

_CONCURRENCY = 64  # registrations asked for one by one; each takes some sockets
_CHUNK = 2048  # registrations whose checks are kept until all of them are done

# Seconds between rounds, and the ratio of one interval to the one before.
_FIRST_INTERVAL, _GROWTH, _MAX_INTERVAL = 2.0, 1.5, 60.0


class CheckPolicy(NamedTuple):
    """`wait` is in seconds: until then, records that are not as wanted are checked again."""

    wait: float
    warn_within: timedelta
    expect_absent: bool

    @property
    def wanted(self) -> Verdict:
        """The good verdict."""
        return Verdict.MISSING if self.expect_absent else Verdict.PUBLISHED


class Progress(Protocol):
    """Is told how far the checks are, in the caller's thread."""

    def checked(self, check: Check) -> None:
        """A check is done, in any order."""

    def pause(self, seconds: float, checks: Sequence[Check]) -> None:
        """Sleep until the next round; `checks` has the latest of each record."""


def check_publication(
    registrations: Iterable[Registration],
    source: Source,
    policy: CheckPolicy,
    emit: Callable[[Check], None],
    *,
    progress: Progress,
    looks: Looks,
    retired: Mapping[RegistrationKey, str] = MappingProxyType({}),
) -> None:
    """Check each registration (with a sound record), and emit the checks in order.

    `progress` and `looks` get each check of each round when it is done. `retired` has the keys
    whose records may be gone, and why. Not for use within an event loop.
    """

    def finish(check: Check) -> Check:
        looks.add(check)
        if not policy.expect_absent:
            check = _as_retired(check, retired)
        progress.checked(check)
        return check

    with Checker(source, expect_absent=policy.expect_absent, finish=finish) as checker:
        checks: Iterable[Check] = ()
        if policy.wait:
            checks = repeat_checks(
                checker.check_again,
                list(registrations),
                seconds=policy.wait,
                is_good=lambda check: is_good(check.finding.verdict, policy.wanted),
                pause=progress.pause,
                clock=time.monotonic,
            )
        else:
            checks = checker.check(registrations)
        now = datetime.now(UTC)
        for check in checks:
            # A record that should be gone, or may be, is never urgent.
            may_be_gone = policy.expect_absent or check.key in retired
            urgency = None if may_be_gone else urgency_of(check, now, policy.warn_within)
            emit(check._replace(urgency=urgency) if urgency else check)


class Checker:
    """Asks the servers that `source` finds. `expect_absent`: the records should be gone.

    `finish` is called with each check when it is done, and returns the check to emit. Not for use
    within an event loop.
    """

    def __init__(
        self,
        source: Source,
        *,
        expect_absent: bool = False,
        finish: Callable[[Check], Check] = lambda check: check,
    ) -> None:
        self._source = source
        self._registration_check = RegistrationCheck(source, expect_absent=expect_absent)
        self._finish = finish
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def check(self, registrations: Iterable[Registration]) -> Iterator[Check]:
        """The checks, in the order of the registrations, each with a sound record."""
        remaining = iter(registrations)
        while chunk := list(itertools.islice(remaining, _CHUNK)):
            yield from self._runner.run(self._check(chunk))

    def check_again(self, registrations: Iterable[Registration]) -> Iterator[Check]:
        """The same, with empty caches."""
        self._source.forget()
        return self.check(registrations)

    async def _check(self, registrations: Sequence[Registration]) -> list[Check]:
        checks: dict[int, Check] = {}
        secure: list[int] = []
        plans = await self._registration_check.plan(registrations)
        remaining = enumerate(zip(registrations, plans, strict=True))

        async def work() -> None:
            for number, (registration, plan) in remaining:
                check, is_secure = await self._registration_check.check(registration, plan)
                checks[number] = check if is_secure else self._finish(check)
                if is_secure:
                    secure.append(number)

        # Not a TaskGroup, whose ExceptionGroup would hide the error.
        await asyncio.gather(*(work() for _ in range(min(_CONCURRENCY, len(registrations)))))
        validated = await self._registration_check.validate([checks[number] for number in secure])
        for number, check in zip(secure, validated, strict=True):
            checks[number] = self._finish(check)
        return [checks[number] for number in range(len(registrations))]


def repeat_checks(
    check: Callable[[Sequence[Registration]], Iterable[Check]],
    registrations: Sequence[Registration],
    *,
    seconds: float,
    is_good: Callable[[Check], bool],
    pause: Callable[[float, Sequence[Check]], None],
    clock: Callable[[], float],
) -> list[Check]:
    """The last check of each registration, in order.

    Those that are not good are checked again, at growing intervals; after `seconds` no further
    round starts. `pause` gets the seconds until the next round and the latest checks, and returns
    when the time is over. `clock` gives seconds.
    """
    until = clock() + seconds
    checks = list(check(registrations))
    for interval in intervals():
        left = [number for number, latest in enumerate(checks) if not is_good(latest)]
        remaining = until - clock()
        if not left or remaining <= 0:
            break
        pause(min(interval, remaining), checks)
        again = check([registrations[number] for number in left])
        for number, latest in zip(left, again, strict=True):
            checks[number] = latest
    return checks


def intervals() -> Iterator[float]:
    """Seconds between rounds: short at first, after a change was just published; later a minute."""
    interval = _FIRST_INTERVAL
    while True:
        yield interval
        interval = min(interval * _GROWTH, _MAX_INTERVAL)


def _as_retired(check: Check, retired: Mapping[RegistrationKey, str]) -> Check:
    """The check; of a record that is missing, and of a key in `retired`: a good one."""
    reason = retired.get(check.key)
    if reason is None or check.finding.verdict is not Verdict.MISSING:
        return check
    return check._replace(finding=Finding(Verdict.RETIRED, reason))
