"""Threads, retries, pauses and stops in random order: no run ever hangs."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from dkimctl.client.wire import Reply
from dkimctl.errors import MaybeProcessed, NotProcessed, Throttled
from dkimctl.models import DomainSpec, Outcome
from dkimctl.registration.limits import WorkerChannel
from fakes import RegistrationService

FAULTS = (MaybeProcessed("lost"), NotProcessed("bounced"), Throttled("429", retry_after=0.002))


class Hasty(WorkerChannel):
    """Waits for real, but not long."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.005))


class StormyService(RegistrationService):
    """Takes a moment for each request, and fails with probability `faults`."""

    def __init__(self, make_registration, seed: int, faults: float) -> None:
        super().__init__(make_registration, self._steps(random.Random(seed), faults))
        self.at_request = lambda number: None

    def _steps(self, chance: random.Random, faults: float) -> Iterator[Callable[..., Reply]]:
        for number in itertools.count(1):
            self.at_request(number)
            moment = chance.random() * 0.002
            fault = chance.choice(FAULTS) if chance.random() < faults else None
            yield partial(self._respond, moment, fault)

    def _respond(self, moment, fault, specs) -> Reply:
        time.sleep(moment)
        if isinstance(fault, NotProcessed):
            raise fault
        reply = self.answer(specs)
        if fault is not None:
            raise fault
        return reply


SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_run_ends_with_true_results(make_run, make_registration, seed):
    chance = random.Random(seed)
    server = StormyService(make_registration, seed, chance.choice((0.0, 0.1, 0.5)))
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
    # The run is in the main thread: a timer stops it if it hangs.
    is_over = threading.Timer(120.0, lambda: setattr(server, "hung", True) or run.engine.stop())
    is_over.daemon = True
    is_over.start()
    results = run.run(specs)
    is_over.cancel()
    assert not hasattr(server, "hung")
    assert [found.registration.sign_domain for found in results] == [s.sign_domain for s in specs]
    domains = [domain for domain, _ in server.registered]
    registered = set(domains)
    assert len(domains) == len(registered)  # none was registered twice
    for found in results:
        is_there = found.registration.sign_domain in registered
        if found.outcome is Outcome.PENDING:
            assert not is_there
        if found.outcome in (Outcome.CREATED, Outcome.EXISTS):
            assert is_there
