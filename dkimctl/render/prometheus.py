"""Checks as metrics, in the text format of Prometheus; names only of what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dkimctl.dns.verdicts import Check, Urgency, Verdict
from dkimctl.render.check_counts import CheckCounts, Run
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable


class PrometheusRenderer(Renderer[Check]):
    """Metrics of one run; `clock` gives seconds since 1970."""

    def __init__(
        self, wanted: Verdict, run: Run, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._counts = CheckCounts(wanted)
        self._run = run
        self._clock = clock

    def add(self, item: Check) -> str:
        self._counts.add(item)
        return ""

    def end(self) -> Iterator[str]:
        registry = CollectorRegistry()
        registry.register(_Collector(self._metrics()))
        yield generate_latest(registry).decode()

    def _metrics(self) -> Iterator[Metric]:
        yield from self._metrics_of_keys()
        yield from self._metrics_of_times()

    def _metrics_of_keys(self) -> Iterator[Metric]:
        counts = self._counts
        yield self._family(
            "dkimctl_keys", "Keys whose records were checked in DNS, by verdict.", ["verdict"],
            [((verdict,), counts.verdicts[verdict]) for verdict in Verdict],
        )  # fmt: skip
        yield self._family(
            "dkimctl_urgent_keys",
            "Keys whose records are not in DNS as registered: mail is signed with them now "
            "(signing), now and some servers have the record (partly), or soon (soon).",
            ["urgency"],
            [((one,), counts.urgencies[one]) for one in Urgency if one],
        )
        yield self._family(
            "dkimctl_key_problem",
            "1 for each key whose record is not as it should be: the most urgent ones.",
            ["sign_domain", "selector", "verdict", "urgency"],
            [(_labels(check), 1) for check in counts.wrong],
        )

    def _metrics_of_times(self) -> Iterator[Metric]:
        counts, now = self._counts, self._clock()
        if counts.oldest is not None:
            yield self._family(
                "dkimctl_oldest_key_timestamp_seconds", "When the oldest enabled key was made.",
                samples=[((), counts.oldest.timestamp())],
            )  # fmt: skip
        yield self._family(
            "dkimctl_check_timestamp_seconds", "When the check ended.", samples=[((), now)]
        )
        yield self._family(
            "dkimctl_check_duration_seconds", "Time that the check took.",
            samples=[((), max(now - self._run.began, 0))],
        )  # fmt: skip

    def _family(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        samples: Iterable[tuple[Sequence[str], float]] = (),
    ) -> Metric:
        """A metric, whose samples have the profile as a label, too."""
        family = GaugeMetricFamily(name, help_text, labels=["profile", *labels])
        for values, value in samples:
            family.add_metric([printable(self._run.profile), *values], value)
        return family


class _Collector(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _labels(check: Check) -> tuple[str, ...]:
    names = (check.sign_domain, check.selector, check.finding.verdict, check.urgency)
    return tuple(map(printable, names))
