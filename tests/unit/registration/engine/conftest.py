"""A ledger, a scripted service, and runs that do not really wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from dkimctl.client.wire import Reply
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec
from dkimctl.registration.engine.engine import RegistrationEngine
from dkimctl.registration.engine.limits import Limits
from dkimctl.registration.engine.workers import WorkerChannel
from dkimctl.registration.planning import Planner

Step = Callable[[list[DomainSpec]], Reply]


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(
        tmp_path / "ledger.db", base_url="https://x.example", client_id="me"
    ) as ledger:
        yield ledger


class Service:
    """Registers what it is sent, from any thread; the steps of a `script` go before.

    A step is an error, a reply, a function of the entries, or None for the usual answer. What
    is registered already is 409 with the data; without a selector, it is another each time.
    """

    def __init__(self, make_registration, script=()) -> None:
        self._make = make_registration
        self._script = list(script)
        self._lock = threading.Lock()
        self.batches: list[list[DomainSpec]] = []
        self.registered: dict[tuple[str, str], object] = {}

    def send(self, specs) -> Reply:
        with self._lock:
            self.batches.append(list(specs))
            step = self._script.pop(0) if self._script else None
        if isinstance(step, Exception):
            raise step
        if callable(step):
            return step(specs)
        return self.answer(specs) if step is None else step

    def answer(self, specs) -> Reply:
        with self._lock:
            return Reply(tuple(map(self._register, specs)))

    def _register(self, spec):
        selector = spec.selector or f"chosen{len(self.registered)}"
        pair = spec.sign_domain, selector
        if pair in self.registered:
            return self.registered[pair]._replace(code="409")
        self.registered[pair] = self._make(*pair)
        return self.registered[pair]

    @property
    def sent(self) -> list[list[str]]:
        """The domains of each request, in the order of the requests."""
        return [[spec.sign_domain for spec in batch] for batch in self.batches]


@pytest.fixture
def service(make_registration):
    return lambda *script: Service(make_registration, script)


class PatientChannel(WorkerChannel):
    """Does not wait, and keeps how long it should have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

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

    def make(send, *, batch_size=9, concurrency=1, max_wait=300.0, grace=5.0, channel=None, **plan):
        warned, observer, channel = [], Observer(), channel or PatientChannel()
        engine = RegistrationEngine(
            ledger,
            Planner(ledger, **plan),
            lambda: send,
            observer=observer,
            warn=warned.append,
            limits=Limits(batch_size, concurrency, max_wait, grace),
            channel=channel,
        )

        def run(specs, on_result=lambda result: None):
            results = []
            engine.run(specs, lambda result: (results.append(result), on_result(result)))
            return results

        return SimpleNamespace(
            engine=engine, run=run, warned=warned, observer=observer, channel=channel
        )

    return make


@pytest.fixture
def outcomes_of():
    return lambda results: [str(result.outcome) for result in results]


@pytest.fixture
def entries():
    """So many entries, each with a selector unless told otherwise."""
    return lambda count, selector="s1": [
        DomainSpec(f"d{number}.example", selector) for number in range(count)
    ]
