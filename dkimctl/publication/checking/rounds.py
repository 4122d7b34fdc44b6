"""Look again and again, until all is as it should be or time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dkimctl.models.registration import Registration
from dkimctl.publication.verdicts import Check

_FIRST, _GROWTH, _LONGEST = 2.0, 1.5, 60.0  # seconds, and the ratio of one to the next


def watch(
    check: Callable[[Sequence[Registration]], Iterable[Check]],
    registrations: Sequence[Registration],
    *,
    seconds: float,
    is_good: Callable[[Check], bool],
    rest: Callable[[float, Sequence[Check]], None],
    clock: Callable[[], float],
) -> list[Check]:
    """The last check of each registration, in their order.

    Those that are not good yet are checked again after intervals that grow; no round begins after
    so many seconds. `rest` is given the seconds until the next round and what all of them are now;
    it returns when they are over. `clock` gives seconds.
    """
    until = clock() + seconds
    checks = list(check(registrations))
    for interval in intervals():
        left = [number for number, found in enumerate(checks) if not is_good(found)]
        remaining = until - clock()
        if not left or remaining <= 0:
            break
        rest(min(interval, remaining), checks)
        again = check([registrations[number] for number in left])
        for number, found in zip(left, again, strict=True):
            checks[number] = found
    return checks


def intervals() -> Iterator[float]:
    """Seconds between two rounds: short at first, for who has just published; a minute at most."""
    interval = _FIRST
    while True:
        yield interval
        interval = min(interval * _GROWTH, _LONGEST)
