"""Checks for monitoring: metrics of Prometheus, and the line of a Nagios plugin."""

from __future__ import annotations

import heapq
import time
from calendar import timegm
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dns.verdicts import Check, Urgency, Verdict, is_good
from dkimctl.formats.renderer import Renderer
from dkimctl.models import MailStats, RegistrationKey, named, utc_time
from dkimctl.text import printable

if TYPE_CHECKING:
    from prometheus_client.core import Metric

MAX_NAMED = 100  # of the keys that are wrong, in metrics
_MAX_IN_LINE = 5  # of them in the line of a plugin
_MAX_MESSAGE = 200  # characters
_URGENT_WORDS = {
    Urgency.SIGNING: "signing without DNS",
    Urgency.PARTLY: "partly in DNS",
    Urgency.SOON: "starting soon without DNS",
}


class Run(NamedTuple):
    """A run of `check-dns`."""

    profile: str
    began: float  # seconds since 1970
    is_incomplete: Callable[[], bool] = bool  # asked at its end: something was not checked
    left: Mapping[str, int] = {}  # selectors in pools that have few, by signing domain
    owner_of: Callable[[str], str] = lambda sign_domain: ""
    mail: Mapping[RegistrationKey, MailStats] = {}  # see `Ledger.mail`


NO_RUN = Run("", 0.0)


class CheckCounter(Renderer[Check]):
    """Counts checks until the end."""

    def __init__(self, wanted: Verdict, run: Run) -> None:
        self._wanted = wanted
        self._run = run
        self._verdicts: Counter[Verdict] = Counter()
        self._urgencies: Counter[Urgency] = Counter()
        self._wrong: dict[Urgency, list[Check]] = {urgency: [] for urgency in Urgency}
        self._mail: list[tuple[MailStats, RegistrationKey]] = []
        self._good = 0
        # When the oldest key that may sign was made; None: not known.
        self._oldest: datetime | None = None

    def add(self, item: Check) -> str:
        verdict = item.finding.verdict
        self._verdicts[verdict] += 1
        if item.urgency:
            self._urgencies[item.urgency] += 1
        if is_good(verdict, self._wanted):
            self._good += 1
        elif len(self._wrong[item.urgency]) < MAX_NAMED:
            self._wrong[item.urgency].append(item)
        if (mail := self._run.mail.get(item.key)) is not None and mail.is_reported:
            self._mail.append((mail, item.key))
        made = utc_time(item.regist_date) or utc_time(item.start_date)
        if made is not None and item.enable is not False and verdict is not Verdict.RETIRED:
            self._oldest = min(made, self._oldest or made)
        return ""

    def _first_wrong(self, most: int) -> list[Check]:
        """The first that are not as wanted, the urgent ones first."""
        return [check for checks in self._wrong.values() for check in checks][:most]


class PrometheusRenderer(CheckCounter):
    """Metrics of one run, in the text format of Prometheus; names only of what is wrong."""

    def end(self) -> Iterator[str]:
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        yield generate_latest(registry).decode()

    def collect(self) -> Sequence[Metric]:
        """The metrics, for a registry of prometheus_client."""
        from prometheus_client.core import GaugeMetricFamily

        now = time.time()
        problems = []
        for check in self._first_wrong(MAX_NAMED):
            cells = [check.sign_domain, check.selector, check.finding.verdict, check.urgency]
            problems.append(([*cells, self._run.owner_of(check.key.sign_domain)], 1))
        mail = heapq.nlargest(MAX_NAMED, self._mail, key=lambda pair: pair[0].failed)
        # Of each metric, its name, text and labels, and samples: their labels and values.
        metrics: list[tuple[str, str, list[str], Sequence[tuple[Sequence[str], float]]]] = [
            ("keys", "Keys whose records were checked in DNS, by verdict.", ["verdict"],
             [([verdict], self._verdicts[verdict]) for verdict in Verdict]),
            ("urgent_keys",
             ("Keys whose records are not in DNS as registered: mail is signed with them now "
              "(signing), now and some servers have the record (partly), or soon (soon)."),
             ["urgency"],
             [([urgency], self._urgencies[urgency]) for urgency in Urgency if urgency]),
            ("key_problem",
             "1 for each key whose record is not as it should be: the most urgent ones.",
             ["sign_domain", "selector", "verdict", "urgency", "owner"], problems),
            ("selectors_left", "Selectors in the pool of each delegated domain that has few.",
             ["sign_domain"], [([domain], left) for domain, left in self._run.left.items()]),
            ("key_messages",
             "Messages of 7 days with each key, by DMARC reports, where most have failed.",
             ["sign_domain", "selector", "result"],
             [((*key, name), count) for of_key, key in mail
              for name, count in (("passed", of_key.passed), ("failed", of_key.failed))]),
            ("key_passed_timestamp_seconds", "The last day on which mail passed with each of them.",
             ["sign_domain", "selector"],
             [(key, timegm(of_key.passed_on.timetuple()))
              for of_key, key in mail if of_key.passed_on is not None]),
            ("oldest_key_timestamp_seconds", "When the oldest enabled key was made.", [],
             [([], made.timestamp()) for made in [self._oldest] if made]),
            ("check_timestamp_seconds", "When the check ended.", [], [([], now)]),
            ("check_duration_seconds", "Time that the check took.", [],
             [([], max(now - self._run.began, 0))]),
        ]  # fmt: skip
        families = []
        for name, text, labels, samples in metrics:
            family = GaugeMetricFamily(f"dkimctl_{name}", text, labels=["profile", *labels])
            for values, value in samples:
                family.add_metric([*map(printable, (self._run.profile, *values))], value)
            if samples or labels:
                families.append(family)
        return families


class NagiosState(IntEnum):
    """What a Nagios plugin says, by its exit status."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


class NagiosRenderer(CheckCounter):
    """One line with the state, and performance data (Monitoring Plugins guidelines)."""

    @property
    def state(self) -> NagiosState:
        if self._urgencies[Urgency.SIGNING]:
            return NagiosState.CRITICAL
        silent = self._verdicts[Verdict.NO_ANSWER]
        if self._run.is_incomplete() or self._good + silent < self._verdicts.total():
            return NagiosState.WARNING
        return NagiosState.UNKNOWN if silent else NagiosState.OK

    def end(self) -> Iterator[str]:
        total, urgencies = self._verdicts.total(), self._urgencies
        wrong = total - self._good
        word = "gone" if self._wanted is Verdict.MISSING else "published"
        parts = [f"{self._good} of {total} {word}"]
        parts += [
            f"{urgencies[key]} {what}" for key, what in _URGENT_WORDS.items() if urgencies[key]
        ]
        if shown := self._first_wrong(_MAX_IN_LINE):
            more = f" and {wrong - len(shown)} more" if wrong > len(shown) else ""
            names = "; ".join(f"{named(check)} {check.finding.verdict}" for check in shown)
            parts.append(names + more)
        if self._run.is_incomplete():
            parts.append("some were not checked")
        data = (  # label=value;warning;critical;minimum;maximum
            f"published={self._good};;;0;{total}",
            f"wrong={wrong};0;;0;{total}",
            f"signing={urgencies[Urgency.SIGNING]};;0;0;{total}",
            f"soon={urgencies[Urgency.SOON]};0;;0;{total}",
            f"no_answer={self._verdicts[Verdict.NO_ANSWER]};0;;0;{total}",
            f"time={max(time.time() - self._run.began, 0):.2f}s;;;0",
        )
        yield f"{_line(self.state, ', '.join(parts))} | {' '.join(data)}\n"


def unknown_line(message: str) -> str:
    """The line of a plugin for an error that ends the command."""
    return f"{_line(NagiosState.UNKNOWN, message[:_MAX_MESSAGE])}\n"


def _line(state: NagiosState, text: str) -> str:
    """A bar would begin performance data."""
    return f"DKIM {state.name} - {printable(text).replace('|', '/')}"
