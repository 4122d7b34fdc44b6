"""A run that is asked to stop: nothing more is sent, and what is under way is waited for."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.errors import Interrupted, MaybeProcessed
from dkimctl.registering.desk import Desk


def test_what_is_under_way_is_waited_for_and_kept(ledger, service, registrar, entries, outcomes_of):
    server = service()

    def send(specs):
        if len(server.batches) == 1:
            run.registrar.stop()
            time.sleep(0.1)
        return server.send(specs)

    run = registrar(send, batch_size=2)
    assert outcomes_of(run.run(entries(8))) == ["created"] * 4 + ["pending"] * 4
    assert isinstance(run.registrar.stopped, Interrupted)
    assert run.watch.endings == [(1, 5.0)]
    assert len(list(ledger.all())) == 4
    assert ledger.intents() == []


def test_but_not_for_ever(ledger, service, registrar, entries, outcomes_of):
    server, release = service(), threading.Event()

    def send(specs):
        if len(server.batches) == 1:
            run.registrar.stop()
            release.wait(20)
        return server.send(specs)

    run = registrar(send, batch_size=2, grace=0.1)
    started = time.monotonic()
    results = list(run.run(entries(6)))
    release.set()
    assert time.monotonic() - started < 5
    assert outcomes_of(results) == ["created"] * 2 + ["unknown"] * 2 + ["pending"] * 2
    assert "stopped" in results[2].reason
    assert {intent.sign_domain for intent in ledger.intents()} == {"d2.example", "d3.example"}


def test_what_waits_to_be_sent_again_waits_no_longer(
    ledger, service, registrar, entries, outcomes_of
):
    server = service(*[MaybeProcessed("timed out", retry_after=200.0)] * 4)
    run = registrar(server.send, desk=Desk())
    run.watch.waiting = lambda *wait: run.registrar.stop()
    started = time.monotonic()
    assert outcomes_of(run.run(entries(2))) == ["unknown"] * 2
    assert time.monotonic() - started < 5
    assert len(server.batches) == 1


def test_before_anything_was_sent(service, registrar, entries, outcomes_of):
    server = service()
    run = registrar(server.send)
    run.registrar.stop()
    assert outcomes_of(run.run(entries(2))) == ["pending"] * 2
    assert server.batches == []


def test_what_the_ledger_knows_is_still_told(service, registrar, entries, outcomes_of):
    list(registrar(service().send).run(entries(3)))
    run = registrar(service().send)
    run.registrar.stop()
    assert outcomes_of(run.run(entries(5))) == ["exists"] * 3 + ["pending"] * 2


def test_the_same_command_then_goes_on(service, registrar, entries, outcomes_of):
    server = service()

    def send(specs):
        if len(server.batches) == 3:
            run.registrar.stop()
        return server.send(specs)

    run = registrar(send, batch_size=1, concurrency=2)
    list(run.run(entries(9)))
    assert set(outcomes_of(registrar(server.send).run(entries(9)))) == {"exists", "created"}
    sent = [domain for batch in server.sent for domain in batch]
    assert sorted(sent) == sorted(spec.sign_domain for spec in entries(9))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_second_stop_while_it_ends_does_no_harm(service, registrar, entries, concurrency):
    server = service()

    def send(specs):
        run.registrar.stop()
        run.registrar.stop()
        return server.send(specs)

    run = registrar(send, batch_size=1, concurrency=concurrency)
    assert len(list(run.run(entries(20)))) == 20
