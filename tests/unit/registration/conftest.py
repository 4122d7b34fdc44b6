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
from fakes import RegistrationService, outcomes_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    with Ledger.open(path, base_url="https://x.example", client_id="me") as ledger:
        yield ledger


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
        self.waits, self.endings = [], []

    def settled(self, results) -> None: ...

    def waiting(self, entries, seconds, reason) -> None:
        self.waits.append((entries, seconds, reason))

    def ending(self, requests, seconds) -> None:
        self.endings.append((requests, seconds))

    def tick(self) -> None: ...


@pytest.fixture
def make_run(ledger):
    """Make a run; `warned`, `observer` and `channel` keep its warnings, reports and waits."""

    def make(
        send, *, batch_size=9, concurrency=1, max_wait=300.0, grace=5.0, channel=None, speed=1,
        **plan,
    ):  # fmt: skip
        warned, observer, channel = [], Observer(), channel or PatientChannel(speed)
        engine = RegistrationEngine(
            ledger, Planner(ledger, **plan), lambda: send, observer=observer, warn=warned.append,
            limits=Limits(batch_size, concurrency, max_wait, grace), channel=channel,
            clock=getattr(channel, "clock", time.monotonic),
        )  # fmt: skip
        return SimpleNamespace(engine=engine, warned=warned, observer=observer, channel=channel)

    return make


@pytest.fixture
def register(make_registration, make_run):
    """Register `specs` at a service with this script; returns the run, its results and outcomes.

    `before` is called with the entries and the run before each request, in its thread.
    """

    def register(
        specs, *script, before=lambda specs, run: None, on_result=lambda result: None,
        **options,
    ):  # fmt: skip
        server = RegistrationService(make_registration, script)

        def send(specs):
            before(specs, run)
            return server.send(specs)

        run = make_run(send, **options)
        run.server, run.results = server, []
        try:
            for result in run.engine.execute(specs):
                run.results.append(result)
                on_result(result)
        except DkimctlError as error:
            if error is not run.engine.stopped:
                raise
        unsent = run.engine.counts_if_nothing_sent.elements()
        run.outcomes = outcomes_of(run.results) or [str(outcome) for outcome in unsent]
        return run

    return register
