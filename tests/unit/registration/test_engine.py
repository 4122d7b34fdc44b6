"""What a run sends, emits and stores."""

from __future__ import annotations

import threading
import time

import pytest

from dkimctl.client.wire import Reply
from dkimctl.models import DnsRecord, DomainSpec, Outcome
from dkimctl.registration.preflight import Planner, plan


@pytest.mark.interface("2.3", "several")
@pytest.mark.interface("8", "batch-size")
def test_a_second_run_sends_nothing_and_gives_the_same_results(
    ledger, service, make_run, outcomes_of, entries
):
    specs, first, second = entries(3), service(), service()
    created = make_run(first.send, batch_size=2).run(specs)
    assert outcomes_of(created) == ["created"] * 3
    assert [len(batch) for batch in first.batches] == [2, 1]
    again = make_run(second.send, batch_size=2).run(specs)
    assert second.batches == []
    assert outcomes_of(again) == ["exists"] * 3
    assert [result.registration for result in again] == [result.registration for result in created]


def test_results_are_emitted_when_known_and_after_they_are_in_the_ledger(
    ledger, service, make_run, entries
):
    server, seen = service(), []
    make_run(server.send, batch_size=2).run(
        entries(10), lambda result: seen.append((len(server.batches), len(list(ledger.all()))))
    )
    assert seen[0] == (1, 2)


def test_an_entry_that_differs_from_the_ledger_is_not_sent(ledger, service, make_run, entries):
    server = service()
    make_run(server.send, batch_size=9).run(entries(1))
    asked = entries(1)[0]._replace(key_len=1024)
    (result,) = make_run(server.send, batch_size=9).run([asked])
    assert result.outcome is Outcome.DIFFERS
    assert len(server.batches) == 1


@pytest.mark.parametrize(
    ("start_date", "sent"),
    [
        ("2026-07-01T00:00+09:00", "2026-07-01T00:00+09:00"),
        ("2026-07-01T00:00:00Z", "2026-07-01T00:00+00:00"),
        ("2026-07-01T00:00:01Z", None),  # no request can state it
        (None, None),
    ],
)
def test_refresh_asks_for_the_key_as_it_is_and_not_for_a_new_one(
    ledger, service, make_registration, make_run, outcomes_of, start_date, sent
):
    known = make_registration("a.example", "chosen", key_len=1024, start_date=start_date)
    ledger.record([known])
    server = service(Reply((known._replace(code="409"),)))
    spec = DomainSpec("a.example", None, 2048, "2027-07-01T00:00+09:00", 0, True)
    results = make_run(server.send, refresh=True).run([spec])
    assert server.batches == [[DomainSpec("a.example", "chosen", 1024, sent, 0, True)]]
    assert outcomes_of(results) == ["exists"]


def test_keys_that_sign_before_they_were_to_are_named(service, make_registration, make_run):
    dates = {"start_date": "2099-01-01T00:00+00:00", "regist_date": "2099-01-02T00:00:00+00:00"}
    specs = [DomainSpec(f"d{n}.example", "s1", None, dates["start_date"]) for n in range(3)]
    answers = [make_registration(spec.sign_domain, **dates) for spec in specs[:2]]
    later = make_registration("d2.example", start_date=dates["start_date"])
    server = service(*(Reply((answer,)) for answer in (*answers, later)))
    run = make_run(server.send, batch_size=1)
    run.run(specs)
    assert run.engine.begun_early == ["d0.example (selector s1)", "d1.example (selector s1)"]


def test_taken_is_remembered_and_retried_only_with_refresh(
    ledger, service, make_registration, make_run, outcomes_of, entries
):
    taken = make_registration("d0.example", "s1", code="409", record=None)
    server = service(Reply((taken,)))
    (result,) = make_run(server.send, batch_size=9).run(entries(1))
    assert result.outcome is Outcome.TAKEN
    assert outcomes_of(plan(entries(2), Planner(ledger))) == ["taken", "pending"]
    assert outcomes_of(make_run(server.send, batch_size=9).run(entries(1))) == ["taken"]
    assert len(server.batches) == 1
    asking = make_run(server.send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run(entries(1))) == ["created"]
    assert outcomes_of(plan(entries(1), Planner(ledger))) == ["exists"]


@pytest.mark.parametrize(
    "answer",
    [{"record": None}, {"record": DnsRecord("x", "TXT", "garbage")}],
    ids=["without data", "garbage"],
)
def test_a_refresh_never_replaces_a_sound_record_with_an_unusable_one(
    ledger, service, make_registration, answer, make_run, outcomes_of, entries
):
    make_run(service().send, batch_size=9).run(entries(1))
    before = list(ledger.all())
    worse = make_registration("d0.example", "s1", code="409", **answer)
    asking = make_run(service(Reply((worse,))).send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run(entries(1))) in (["taken"], ["unusable"])
    assert list(ledger.all()) == before


def test_a_refresh_keeps_fields_that_its_answer_leaves_out(
    ledger, service, make_registration, make_run, outcomes_of, entries
):
    asked = entries(1)[0]._replace(enable=False)
    first = make_registration(
        "d0.example", "s1", enable=False, regist_date="2026-11-21T10:00+09:00"
    )
    make_run(service(Reply((first,))).send, batch_size=9).run([asked])
    thin = make_registration("d0.example", "s1", code="409", key_len=None)
    asking = make_run(service(Reply((thin,))).send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run([asked])) == ["exists"]
    (kept,) = ledger.all()
    assert (kept.enable, kept.regist_date) == (False, first.regist_date)


def test_stray_items_and_faults_are_reported(
    ledger, service, make_registration, make_run, entries, outcomes_of
):
    reply = Reply(
        (make_registration("d0.example"), make_registration("evil.example")), ("a fault",)
    )
    run = make_run(service(reply).send)
    assert outcomes_of(run.run(entries(1))) == ["created"]
    assert "a fault" in run.warned[0]
    assert "evil.example (selector s1)" in run.warned[1]
    assert [found.sign_domain for found in ledger.all()] == ["d0.example"]


def test_requests_run_in_parallel_after_a_first_one_alone(service, make_run, entries, outcomes_of):
    server, lock, under_way, seen = service(), threading.Lock(), [0], []

    def send(specs):
        with lock:
            under_way[0] += 1
            seen.append(under_way[0])
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1
        return server.send(specs)

    run = make_run(send, batch_size=1, concurrency=4)
    assert outcomes_of(run.run(entries(30))) == ["created"] * 30
    assert len(server.batches) == 30
    assert seen[:2] == [1, 1]  # one more for each answer
    assert max(seen) == 4


def test_a_defect_in_a_worker_thread_is_raised(make_run, entries):
    def send(specs):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_run(send).run(entries(1))
