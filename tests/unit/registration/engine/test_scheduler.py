"""When requests are sent: pauses that the service asks for, and a disk that fills up."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.errors import LedgerError, Throttled
from dkimctl.registration.engine.workers import WorkerChannel

PAUSE = 0.5  # seconds


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["s1", None])
def test_no_request_is_sent_during_a_pause(service, make_run, entries, outcomes_of, selector):
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
    ledger, service, make_run, entries, outcomes_of, monkeypatch
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
    ledger, service, make_run, entries, monkeypatch
):
    asked = []
    monkeypatch.setattr(ledger, "require_disk_space", lambda count: asked.append(count) or 0)
    make_run(service().send, batch_size=5, concurrency=2).run(entries(40))
    assert asked[0] >= 5
    assert max(asked) == (2 + 2) * 5  # two at the service, two with a permit
