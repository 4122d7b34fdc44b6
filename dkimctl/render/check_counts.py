"""What monitoring asks of many checks: how many of each kind, and which are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from dkimctl.dns.verdicts import Check, Urgency, Verdict, is_good
from dkimctl.models.registration import utc_time

MAX_NAMED = 100  # of the checks that are wrong


class Run(NamedTuple):
    """A run of `check-dns`: its profile, and when it began, in seconds since 1970.

    `is_incomplete`, asked at its end: something that was selected could not be checked.
    """

    profile: str
    began: float
    is_incomplete: Callable[[], bool] = bool


class CheckCounts:
    """Counts checks. `wrong` has the first MAX_NAMED that are not `wanted`, the urgent first.

    `oldest` is when the oldest key that may sign was made; None: not known.
    """

    def __init__(self, wanted: Verdict) -> None:
        self.wanted = wanted
        self.verdicts: Counter[Verdict] = Counter()
        self.urgencies: Counter[Urgency] = Counter()
        self.oldest: datetime | None = None
        self._wrong: dict[Urgency, list[Check]] = {urgency: [] for urgency in Urgency}

    @property
    def total(self) -> int:
        return self.verdicts.total()

    @property
    def good(self) -> int:
        return sum(count for verdict, count in self.verdicts.items() if self.is_good(verdict))

    @property
    def wrong(self) -> list[Check]:
        return [check for checks in self._wrong.values() for check in checks][:MAX_NAMED]

    def is_good(self, verdict: Verdict) -> bool:
        return is_good(verdict, self.wanted)

    def add(self, check: Check) -> None:
        verdict = check.finding.verdict
        self.verdicts[verdict] += 1
        if check.urgency:
            self.urgencies[check.urgency] += 1
        if not self.is_good(verdict) and len(self._wrong[check.urgency]) < MAX_NAMED:
            self._wrong[check.urgency].append(check)
        made = utc_time(check.regist_date) or utc_time(check.start_date)
        if made is not None and check.enable is not False and verdict is not Verdict.RETIRED:
            self.oldest = min(made, self.oldest or made)
