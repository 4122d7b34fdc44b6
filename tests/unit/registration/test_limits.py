"""When requests are sent, and how many: pauses, a disk that fills up, few threads."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.errors import LedgerError, MaybeProcessed, ThreadLimitError, Throttled
from dkimctl.registration.limits import BatchScheduler, ConcurrencyLimiter, WorkerChannel
from fakes import Clock, entries, outcomes_of
from thread_limits import FewThreads


@pytest.fixture
def clock():
    return Clock(1000.0)


@pytest.fixture
def pace(clock):
    return ConcurrencyLimiter(8, clock)


def test_starts_with_one_and_adds_one_for_each_answer(pace):
    assert pace.limit == 1
    for allowed in range(2, 9):
        pace.answered()
        assert pace.limit == allowed
    pace.answered()


def test_429_halves_the_limit_and_allows_none_during_the_pause(pace, clock):
    for _ in range(8):
        pace.answered()
    pace.throttled(5.0)
    assert (pace.limit, pace.pause_left()) == (0, 5.0)
    clock.now += 4.9
    assert pace.limit == 0
    clock.now += 0.2
    assert (pace.limit, pace.pause_left()) == (4, 0.0)


def test_grows_slowly_after_a_429_and_never_falls_below_one(pace):
    for _ in range(9):
        pace.throttled(0.0)
    assert pace.limit == 1
    pace.answered()
    assert pace.limit == 2
    pace.answered()
    assert pace.limit == 2
    pace.answered()
    assert pace.limit == 2
    for _ in range(100):
        pace.answered()
    assert pace.limit == 8


def test_the_longer_pause_counts(pace):
    pace.throttled(9.0)
    pace.throttled(1.0)
    assert pace.pause_left() == 9.0


PAUSE = 0.5  # seconds


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["s1", None])
def test_no_request_is_sent_during_a_pause(service, make_run, selector):
    server, lock = service(), threading.Lock()
    sent, waits_since = [], []

    def send(specs):
        with lock:
            sent.append(time.monotonic())
            is_refused = len(sent) == 20
        time.sleep(0.08)  # so that others are in flight, and more have a permit
        if is_refused:
            raise Throttled("429", retry_after=PAUSE)
        return server.send(specs)

    run = make_run(send, batch_size=1, concurrency=4, channel=WorkerChannel())
    run.observer.waiting = lambda *wait: waits_since.append(time.monotonic())
    assert outcomes_of(run.run(entries(60, selector))) == ["created"] * 60
    # What left at the same moment does not count; the wait was reckoned from a little before.
    meanwhile = [at for at in sent if waits_since[0] + 0.1 < at < waits_since[0] + PAUSE - 0.1]
    assert meanwhile == []
    assert len(sent) == 61


def test_a_full_disk_stops_sending_and_leaves_nothing_in_doubt(
    ledger, service, make_run, monkeypatch
):
    asked = []

    def require_disk_space(count):
        asked.append(count)
        if len(asked) > 2:
            raise LedgerError("there is no space", hint="free some")
        return 3  # entries; then it is asked again

    monkeypatch.setattr(ledger, "require_disk_space", require_disk_space)
    server = service()
    run = make_run(server.send, batch_size=2)
    found = outcomes_of(run.run(entries(20, None)))
    sent = sum(map(len, server.batches))
    assert 0 < sent < 20
    assert found == ["created"] * sent + ["pending"] * (20 - sent)
    assert len(list(ledger.all())) == sent
    assert ledger.intents() == []
    assert "no space" in run.engine.stopped.message
    assert run.engine.stopped.exit_code == 4


def test_disk_space_is_required_for_all_answers_that_may_arrive(
    ledger, service, make_run, monkeypatch
):
    asked = []
    monkeypatch.setattr(ledger, "require_disk_space", lambda count: asked.append(count) or 0)
    make_run(service().send, batch_size=5, concurrency=2).run(entries(40))
    assert asked[0] >= 5
    assert max(asked) == (2 + 2) * 5  # two at the service, two with a permit


@pytest.mark.parametrize("selector", ["s1", None])
@pytest.mark.parametrize(("allowed", "most"), [(1, 1), (2, 1), (3, 1), (5, 3), (20, 4)])
def test_as_many_requests_at_a_time_as_there_are_threads_but_two(
    ledger, service, make_run, selector, allowed, most
):
    server, lock = service(*[MaybeProcessed("lost", retry_after=0), None] * 3), threading.Lock()
    in_flight, intents, together = [0], [0], threading.Event()

    def send(specs):
        with lock:
            in_flight.append(in_flight[-1] + 1)
            if in_flight[-1] == most:
                together.set()
        try:
            together.wait(0.1)  # on a busy machine, threads begin late
            return server.send(specs)
        finally:
            with lock:
                in_flight.append(in_flight[-1] - 1)

    def count_intents(result):
        intents.append(len(ledger.intents()))

    run = make_run(send, batch_size=1, concurrency=4, start_thread=FewThreads(allowed))
    outcomes = outcomes_of(run.run(entries(60, selector), count_intents))
    assert outcomes.count("created") == (60 if selector else 57)
    assert max(in_flight) == most
    if selector is None:  # a kill leaves no more in doubt
        assert max(intents) <= most + 3
    text = f"the system allows only {most} of 4 threads for requests (ulimit -u)"
    assert run.warned == ([text] if most < 4 else [])


def test_a_service_that_asks_for_less_gets_less_than_the_threads_could_send():
    limiter, warned = ConcurrencyLimiter(8), []
    scheduler = BatchScheduler(8, limiter, WorkerChannel(), FewThreads(4))
    scheduler.open(lambda batch: None, warned.append)
    for _ in range(10):
        limiter.answered()
    assert limiter.limit == 2
    limiter.throttled(0)
    assert limiter.limit == 1
    scheduler.close()


def test_without_a_thread_nothing_is_sent_or_in_doubt(ledger, service, make_run):
    server = service()
    run = make_run(server.send, start_thread=FewThreads(0))
    assert outcomes_of(run.run(entries(20))) == ["pending"] * 20
    assert isinstance(run.engine.stopped, ThreadLimitError)
    assert "ulimit -u" in run.engine.stopped.hint
    assert (server.batches, ledger.intents()) == ([], [])
    assert not run.engine.may_have_reached_service
