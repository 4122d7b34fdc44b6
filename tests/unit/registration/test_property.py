"""Whatever goes wrong, nothing is lost or doubled, and each outcome is true."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dkimctl.client.wire import Reply
from dkimctl.errors import DkimctlError, MaybeProcessed, NotProcessed, RequestRefused, Throttled
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DomainSpec, Outcome, Registration
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.limits import Limits, WorkerChannel
from dkimctl.registration.preflight import Planner
from fakes import RegistrationService

KINDS = (
    "answered", "lost before", "lost after", "bounced", "throttled", "missing", "failed",
    "reordered", "too large", "wrong entry", "stop",
)  # fmt: skip


BEFORE = {
    "lost before": MaybeProcessed("lost"),
    "bounced": NotProcessed("bounced"),
    "throttled": Throttled("throttled", retry_after=0.0),
}


AFTER = {
    "missing": lambda items: items[1:],
    "failed": lambda items: [items[0]._replace(code="500", record=None), *items[1:]],
    "reordered": lambda items: items[::-1],
}


class Eager(WorkerChannel):
    def sleep(self, seconds: float) -> None:
        pass


class Quiet:
    def settled(self, results) -> None: ...
    def waiting(self, entries, seconds, reason) -> None: ...
    def ending(self, requests, seconds) -> None: ...
    def tick(self) -> None: ...


class FaultyService(RegistrationService):
    """Answers each request as the next of `kinds` says, or stops `engine`."""

    engine: RegistrationEngine

    def __init__(self, make_registration, kinds) -> None:
        super().__init__(make_registration, (partial(self._respond, kind) for kind in kinds))

    def _respond(self, kind, specs) -> Reply:
        if kind in BEFORE:
            raise BEFORE[kind]
        if kind == "too large" and len(specs) > 1:
            raise RequestRefused("413", "too large")
        if kind == "stop":
            self.engine.stop()
        if kind == "wrong entry" and specs[0][:2] not in self.registered:
            wrong, *specs = specs
            refused = Registration(wrong.sign_domain, wrong.selector, code="400")
            return Reply((refused, *self.answer(specs).items))
        items = self.answer(specs).items
        if kind == "lost after":
            raise MaybeProcessed("lost")
        return Reply(tuple(AFTER.get(kind, tuple)(items)))


def run_once(path: Path, service: FaultyService, specs, concurrency: int, grace: float = 5.0):
    with Ledger.open(path, base_url="https://x.example", client_id="me") as ledger:
        engine = RegistrationEngine(
            ledger, Planner(ledger), lambda: service.send, observer=Quiet(), warn=lambda text: None,
            limits=Limits(3, concurrency, max_wait=1.0, grace=grace), channel=Eager(),
        )  # fmt: skip
        service.engine = engine
        results = []
        try:
            results.extend(engine.execute(specs))
        except DkimctlError as error:
            if error is not engine.stopped or results:
                raise
        doubtful = {result.registration[:2] for result in results if result.outcome == "unknown"}
        assert doubtful <= {intent[:2] for intent in ledger.intents()}
        return results, {(found.sign_domain, found.selector) for found in ledger.all()}


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=20),
    selectors=st.lists(st.sampled_from(["s1", None]), min_size=1, max_size=14),
    runs=st.integers(1, 3),
    grace=st.sampled_from([0.0, 5.0]),
)
def test_nothing_is_lost_or_doubled(make_registration, kinds, selectors, runs, grace, concurrency):
    service = FaultyService(make_registration, kinds)
    specs = [DomainSpec(f"d{n}.example", selector) for n, selector in enumerate(selectors)]
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(runs):
            results, kept = run_once(
                Path(directory, "ledger.db"), service, specs, concurrency, grace
            )
    domains = [domain for domain, _ in service.registered]
    assert len(domains) == len(set(domains))  # none is registered twice
    if not results:  # the last run was stopped before it sent anything
        return
    assert [found.registration.sign_domain for found in results] == [s.sign_domain for s in specs]
    good = {
        (found.registration.sign_domain, found.registration.selector)
        for found in results
        if found.outcome in (Outcome.CREATED, Outcome.EXISTS)
    }
    assert good == kept  # what is emitted as registered is in the ledger,
    assert kept <= set(service.registered)  # and at the service
    pending = {f.registration.sign_domain for f in results if f.outcome is Outcome.PENDING}
    assert pending.isdisjoint(domains)
    assert {found.outcome for found in results} <= {
        Outcome.CREATED, Outcome.EXISTS, Outcome.PENDING, Outcome.UNKNOWN, Outcome.FAILED,
        Outcome.INVALID,
    }  # fmt: skip


@pytest.mark.slow
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(kinds=st.lists(st.sampled_from(KINDS), max_size=30))
def test_with_selectors_repeating_the_command_finishes(make_registration, kinds):
    service = FaultyService(make_registration, kinds)
    specs = [DomainSpec(f"d{n}.example", "s1") for n in range(10)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "ledger.db")
        for _ in range(12):
            results, _ = run_once(path, service, specs, 2)
            if {result.outcome for result in results} <= {Outcome.CREATED, Outcome.EXISTS}:
                break
        with Ledger.open(path, base_url="https://x.example", client_id="me") as ledger:
            assert ledger.intents() == []
    assert len(results) == len(service.registered) == 10
    assert {result.outcome for result in results} <= {Outcome.CREATED, Outcome.EXISTS}
