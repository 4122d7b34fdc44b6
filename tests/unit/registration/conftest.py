"""A ledger, a scripted service, and runs that do not really wait."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from dkimctl.errors import DkimctlError
from dkimctl.ledger.ledger import Ledger
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.limits import Limits, WorkerChannel, WorkerEvent
from dkimctl.registration.preflight import Planner
from dkimctl.threads import start_daemon
from fakes import RegistrationService


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(
        tmp_path / "ledger.db", base_url="https://x.example", client_id="me"
    ) as ledger:
        yield ledger


@pytest.fixture
def service(make_registration):
    return lambda *script: RegistrationService(make_registration, script)


class PatientChannel(WorkerChannel):
    """Does not wait before a retry, but records how long it should have waited.

    All other time passes `speed` times as fast as it should.
    """

    def __init__(self, speed: float = 1) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._speed = speed

    def clock(self) -> float:
        return time.monotonic() * self._speed

    def collect(self, timeout: float) -> list[WorkerEvent]:
        return super().collect(timeout / self._speed)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class Observer:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.results, self.waits, self.endings = [], [], []

    def settled(self, results) -> None:
        self.results += results

    def waiting(self, entries, seconds, reason) -> None:
        self.waits.append((entries, seconds, reason))

    def ending(self, requests, seconds) -> None:
        self.endings.append((requests, seconds))

    def tick(self) -> None: ...


@pytest.fixture
def make_run(ledger):
    """Make a run; `warned`, `observer` and `channel` keep its warnings, reports and waits."""

    def make(
        send,
        *,
        batch_size=9,
        concurrency=1,
        max_wait=300.0,
        grace=5.0,
        channel=None,
        speed=1,
        start_thread=start_daemon,
        **plan,
    ):
        warned, observer, channel = [], Observer(), channel or PatientChannel(speed)
        engine = RegistrationEngine(
            ledger,
            Planner(ledger, **plan),
            lambda: send,
            observer=observer,
            warn=warned.append,
            limits=Limits(batch_size, concurrency, max_wait, grace),
            channel=channel,
            clock=getattr(channel, "clock", time.monotonic),
            start_thread=start_thread,
        )

        def run(specs, on_result=lambda result: None):
            results = []
            try:
                engine.execute(specs, lambda result: (results.append(result), on_result(result)))
            except DkimctlError as error:
                if error is not engine.stopped:
                    raise
            unsent = engine.counts_if_nothing_sent.elements()
            return results or [SimpleNamespace(outcome=outcome) for outcome in unsent]

        return SimpleNamespace(
            engine=engine, run=run, warned=warned, observer=observer, channel=channel
        )

    return make
