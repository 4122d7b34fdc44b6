"""A run that is stopped: nothing more is sent, and requests in flight are awaited."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.errors import Interrupted, MaybeProcessed, NoService, RequestRefused, Throttled
from dkimctl.registration.limits import WorkerChannel


def test_requests_in_flight_are_awaited_and_stored(ledger, service, make_run, entries, outcomes_of):
    server = service()

    def send(specs):
        if len(server.batches) == 1:
            run.engine.stop()
            time.sleep(0.1)
        return server.send(specs)

    run = make_run(send, batch_size=2)
    assert outcomes_of(run.run(entries(8))) == ["created"] * 4 + ["pending"] * 4
    assert isinstance(run.engine.stopped, Interrupted)
    assert run.observer.endings == [(1, 5.0)]
    assert len(list(ledger.all())) == 4
    assert ledger.intents() == []


def test_requests_in_flight_are_awaited_no_longer_than_the_grace_period(
    ledger, service, make_run, entries, outcomes_of
):
    server, release = service(), threading.Event()

    def send(specs):
        if len(server.batches) == 1:
            run.engine.stop()
            release.wait(20)
        return server.send(specs)

    run = make_run(send, batch_size=2, grace=0.1)
    started = time.monotonic()
    results = run.run(entries(6))
    release.set()
    assert time.monotonic() - started < 15
    assert outcomes_of(results) == ["created"] * 2 + ["unknown"] * 2 + ["pending"] * 2
    assert "stopped" in results[2].reason
    assert {intent.sign_domain for intent in ledger.intents()} == {"d2.example", "d3.example"}


def test_a_backoff_ends_at_once(ledger, service, make_run, entries, outcomes_of):
    server = service(*[MaybeProcessed("timed out", retry_after=200.0)] * 4)
    run = make_run(server.send, channel=WorkerChannel())
    run.observer.waiting = lambda *wait: run.engine.stop()
    started = time.monotonic()
    assert outcomes_of(run.run(entries(2))) == ["unknown"] * 2
    assert time.monotonic() - started < 15
    assert len(server.batches) == 1


def test_entries_in_the_ledger_are_still_emitted(service, make_run, entries, outcomes_of):
    make_run(service().send).run(entries(3))
    run = make_run(service().send)
    run.engine.stop()
    assert outcomes_of(run.run(entries(5))) == ["exists"] * 3 + ["pending"] * 2


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_second_stop_during_shutdown_does_no_harm(service, make_run, entries, concurrency):
    server = service()

    def send(specs):
        run.engine.stop()
        run.engine.stop()
        return server.send(specs)

    run = make_run(send, batch_size=1, concurrency=concurrency)
    assert len(run.run(entries(20))) == 20


@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("selector", ["s1", None])
def test_an_answer_at_the_last_moment_is_stored_or_not_emitted(
    ledger, service, make_run, entries, selector, number
):
    server = service()

    def send(specs):
        run.engine.stop()
        return server.send(specs)

    run = make_run(send, batch_size=2, grace=0.0)
    results = run.run(entries(4, selector))
    told = {found.registration.sign_domain for found in results if found.outcome == "created"}
    doubtful = {found.registration.sign_domain for found in results if found.outcome == "unknown"}
    assert told <= {found.sign_domain for found in ledger.all()}
    assert doubtful <= {intent.sign_domain for intent in ledger.intents()}


def test_entries_that_wait_for_a_permit_are_not_in_doubt(
    ledger, service, make_run, entries, outcomes_of
):
    """The second half of a batch, while the first is in flight and gets no answer."""
    release = threading.Event()

    def send(specs):
        if len(specs) > 2:
            raise RequestRefused("413", "too large")
        run.engine.stop()
        release.wait(20)
        return service().send(specs)

    run = make_run(send, batch_size=4, grace=0.2)
    results = run.run(entries(4, None))
    release.set()
    assert outcomes_of(results) == ["unknown"] * 2 + ["pending"] * 2
    assert {intent.sign_domain for intent in ledger.intents()} == {"d0.example", "d1.example"}
    assert run.engine.may_have_reached_service


def test_a_stop_of_a_run_that_is_ending_ends_the_wait(service, make_run, entries, outcomes_of):
    server, release = service(), threading.Event()
    failed = NoService("the service answered 404")

    def send(specs):
        reply = server.send(specs)
        if specs[0].sign_domain in ("d1.example", "d3.example"):
            release.wait(20)
        if specs[0].sign_domain == "d2.example":
            raise failed
        return reply

    run = make_run(send, batch_size=1, concurrency=4, grace=60.0)
    run.observer.ending = lambda *_: run.engine.stop()
    started = time.monotonic()
    results = run.run(entries(8))
    release.set()
    assert time.monotonic() - started < 15
    assert isinstance(run.engine.stopped, Interrupted)
    assert run.warned == [failed.message]
    assert outcomes_of(results)[0] == "created"


def test_a_stop_during_a_pause_is_immediate(service, make_run, entries):
    run = make_run(service(Throttled("429", retry_after=200.0)).send, channel=WorkerChannel())
    run.observer.waiting = lambda *_: run.engine.stop()
    started = time.monotonic()
    assert len(run.run(entries(30_000))) == 30_000
    assert time.monotonic() - started < 15


def test_a_defect_loses_no_answers_of_other_batches(ledger, service, make_run, entries):
    server, both = service(), threading.Barrier(2)

    def send(specs):
        if len(server.batches) >= 2:
            both.wait(20)
            if specs[0].sign_domain == "d3.example":
                raise ZeroDivisionError
            time.sleep(0.2)
        return server.send(specs)

    with pytest.raises(ZeroDivisionError):
        make_run(send, batch_size=1, concurrency=2).run(entries(4))
    assert len(list(ledger.all())) == len(server.registered) == 3
    assert [intent.sign_domain for intent in ledger.intents()] == ["d3.example"]
