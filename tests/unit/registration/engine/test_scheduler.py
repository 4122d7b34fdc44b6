"""When requests leave: what the service's wish for peace, and a disk that fills up, change."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.errors import LedgerError, Throttled
from dkimctl.registration.engine.workers import WorkerChannel

PEACE = 0.5  # seconds


@pytest.mark.parametrize("selector", ["s1", None])
def test_while_the_service_wants_peace_no_other_request_leaves(
    service, make_run, entries, outcomes_of, selector
):
    server, lock = service(), threading.Lock()
    sent, waits_since = [], []

    def send(specs):
        with lock:
            sent.append(time.monotonic())
            is_refused = len(sent) == 20
        time.sleep(0.08)  # so that others are under way, and more have leave
        if is_refused:
            raise Throttled("429", retry_after=PEACE)
        return server.send(specs)

    run = make_run(send, batch_size=1, concurrency=4, channel=WorkerChannel())
    run.observer.waiting = lambda *wait: waits_since.append(time.monotonic())
    assert outcomes_of(run.run(entries(60, selector))) == ["created"] * 60
    # What left at the same moment does not count; the wait was reckoned from a little before.
    meanwhile = [at for at in sent if waits_since[0] + 0.1 < at < waits_since[0] + PEACE - 0.1]
    assert meanwhile == []
    assert len(sent) == 61


def test_once_the_disk_has_no_room_nothing_more_is_sent_and_nothing_is_in_doubt(
    ledger, service, make_run, entries, outcomes_of, monkeypatch
):
    asked = []

    def require_disk_space(count):
        asked.append(count)
        if len(asked) > 2:
            raise LedgerError("there is no space", hint="free some")
        return 3  # more than asked for: then it is asked again

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


def test_the_room_that_is_asked_for_is_that_of_all_that_may_be_answered(
    ledger, service, make_run, entries, monkeypatch
):
    asked = []
    monkeypatch.setattr(ledger, "require_disk_space", lambda count: asked.append(count) or 0)
    make_run(service().send, batch_size=5, concurrency=2).run(entries(40))
    assert asked[0] >= 5
    assert max(asked) == (2 + 2) * 5  # two at the service, two that have leave
