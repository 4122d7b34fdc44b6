"""Threads, retries, pauses and stops in every order that chance brings: no run ever hangs."""

from __future__ import annotations

import random
import threading
import time

import pytest

from dkimctl.client.wire import Reply
from dkimctl.errors import MaybeProcessed, NotProcessed, Throttled
from dkimctl.models.registration import DomainSpec, Outcome
from dkimctl.registration.engine.workers import WorkerChannel

FAULTS = (MaybeProcessed("lost"), NotProcessed("bounced"), Throttled("429", retry_after=0.002))


class Hasty(WorkerChannel):
    """Waits for real, but not long."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.005))


class Service:
    """Takes a moment for each request, and fails with the probability `faults`."""

    def __init__(self, seed: int, faults: float, make_registration) -> None:
        self._chance = random.Random(seed)
        self._faults = faults
        self._make = make_registration
        self._lock = threading.Lock()
        self.requests = 0
        self.registered: dict[tuple[str, str], object] = {}
        self.at_request = lambda number: None

    def send(self, specs) -> Reply:
        with self._lock:
            self.requests += 1
            self.at_request(self.requests)
            moment = self._chance.random() * 0.002
            fault = self._chance.choice(FAULTS) if self._chance.random() < self._faults else None
        time.sleep(moment)
        if isinstance(fault, NotProcessed):
            raise fault
        with self._lock:
            items = tuple(map(self._register, specs))
        if fault is not None:
            raise fault
        return Reply(items)

    def _register(self, spec):
        pair = spec.sign_domain, spec.selector or "chosen"
        if pair in self.registered:
            assert spec.selector, f"{spec.sign_domain} is sent a second time"
            return self.registered[pair]._replace(code="409")
        self.registered[pair] = self._make(*pair)
        return self.registered[pair]


@pytest.mark.parametrize("seed", range(60))
def test_every_run_ends_and_tells_the_truth(make_run, make_registration, seed):
    chance = random.Random(seed)
    server = Service(seed, chance.choice((0.0, 0.1, 0.5)), make_registration)
    run = make_run(
        server.send,
        batch_size=chance.choice((1, 3, 9)),
        concurrency=chance.choice((1, 2, 3, 8)),
        max_wait=1.0,
        channel=Hasty(),
    )
    if chance.random() < 0.3:
        server.at_request = lambda number: number == 5 and run.engine.stop()
    selectors = [chance.choice(("s1", None)) for _ in range(chance.randint(1, 120))]
    specs = [DomainSpec(f"d{n}.example", selector) for n, selector in enumerate(selectors)]
    # The run is the main thread's, and so a hang ends by a stop: a run that hangs is interrupted.
    is_over = threading.Timer(20.0, lambda: setattr(server, "hung", True) or run.engine.stop())
    is_over.daemon = True
    is_over.start()
    results = run.run(specs)
    is_over.cancel()
    assert not hasattr(server, "hung")
    assert [found.registration.sign_domain for found in results] == [s.sign_domain for s in specs]
    registered = {domain for domain, _ in server.registered}
    for found in results:
        is_there = found.registration.sign_domain in registered
        if found.outcome is Outcome.PENDING:
            assert not is_there
        if found.outcome in (Outcome.CREATED, Outcome.EXISTS):
            assert is_there
