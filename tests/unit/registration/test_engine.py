"""What a run sends, emits and stores, also when it is stopped or killed."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

from dkimctl.client.wire import Reply
from dkimctl.errors import (
    CredentialsError,
    Interrupted,
    LedgerError,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    Throttled,
    TokenRejected,
)
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, Outcome, Result
from dkimctl.registration.batches import BatchEntry
from dkimctl.registration.engine import persist
from dkimctl.registration.limits import WorkerChannel
from dkimctl.registration.preflight import Planner, plan
from fakes import entries, outcomes_of


@pytest.mark.interface("2.3", "several")
@pytest.mark.interface("8", "batch-size")
def test_a_second_run_sends_nothing_and_gives_the_same_results(ledger, service, make_run):
    specs, first, second = entries(3), service(), service()
    created = make_run(first.send, batch_size=2).run(specs)
    assert outcomes_of(created) == ["created"] * 3
    assert [len(batch) for batch in first.batches] == [2, 1]
    again = make_run(second.send, batch_size=2).run(specs)
    assert second.batches == []
    assert outcomes_of(again) == ["exists"] * 3
    assert [result.registration for result in again] == [result.registration for result in created]


def test_results_are_emitted_when_known_and_after_they_are_in_the_ledger(ledger, service, make_run):
    server, seen = service(), []
    make_run(server.send, batch_size=2).run(
        entries(10), lambda result: seen.append((len(server.batches), len(list(ledger.all()))))
    )
    assert seen[0] == (1, 2)


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
    ledger, service, make_registration, make_run, start_date, sent
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
    ledger, service, make_registration, make_run
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
    ledger, service, make_registration, answer, make_run
):
    make_run(service().send, batch_size=9).run(entries(1))
    before = list(ledger.all())
    worse = make_registration("d0.example", "s1", code="409", **answer)
    asking = make_run(service(Reply((worse,))).send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run(entries(1))) in (["taken"], ["unusable"])
    assert list(ledger.all()) == before


def test_a_refresh_keeps_fields_that_its_answer_leaves_out(
    ledger, service, make_registration, make_run
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


def test_stray_items_and_faults_are_reported(ledger, service, make_registration, make_run):
    reply = Reply(
        (make_registration("d0.example"), make_registration("evil.example")), ("a fault",)
    )
    run = make_run(service(reply).send)
    assert outcomes_of(run.run(entries(1))) == ["created"]
    assert "a fault" in run.warned[0]
    assert "evil.example (selector s1)" in run.warned[1]
    assert [found.sign_domain for found in ledger.all()] == ["d0.example"]


def test_requests_run_in_parallel_after_a_first_one_alone(service, make_run):
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


@pytest.fixture
def known_after(ledger, make_registration):
    """What the ledger has of example.com after an answer, beside the sound key s1."""

    def known_after(registration, outcome):
        ledger.record([make_registration()])
        entry = BatchEntry(DomainSpec(registration.sign_domain, registration.selector))
        persist(ledger, [(entry, Result(registration, outcome))], [])
        return [one.selector for one in ledger.of_domain("example.com")]

    return known_after


@pytest.mark.parametrize("outcome", [Outcome.UNUSABLE, Outcome.TAKEN])
def test_an_answer_without_a_usable_record_is_kept_beside_those_of_other_selectors(
    known_after, make_registration, outcome
):
    answer = make_registration(selector="s2", record=None)
    assert known_after(answer, outcome) == ["s1", "s2"]


@pytest.mark.parametrize("selector", ["S1", None])
def test_it_never_stands_for_a_key_that_has_one(known_after, make_registration, ledger, selector):
    """One that names no selector would count as the newest key of its domain."""
    answer = make_registration()._replace(selector=selector, record=None, key_len=None)
    assert known_after(answer, Outcome.UNUSABLE) == ["s1"]
    assert ledger.of_domain("example.com") == [make_registration()]


@pytest.mark.parametrize("outcome", [Outcome.INVALID, Outcome.FAILED, Outcome.UNKNOWN])
def test_an_entry_without_a_registration_is_not_kept(known_after, make_registration, outcome):
    assert known_after(make_registration(selector="s2"), outcome) == ["s1"]


def test_requests_in_flight_are_awaited_and_stored(ledger, service, make_run):
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


def test_requests_in_flight_are_awaited_no_longer_than_the_grace_period(ledger, service, make_run):
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


def test_a_backoff_ends_at_once(ledger, service, make_run):
    server = service(*[MaybeProcessed("timed out", retry_after=200.0)] * 4)
    run = make_run(server.send, channel=WorkerChannel())
    run.observer.waiting = lambda *wait: run.engine.stop()
    started = time.monotonic()
    assert outcomes_of(run.run(entries(2))) == ["unknown"] * 2
    assert time.monotonic() - started < 15
    assert len(server.batches) == 1


def test_entries_in_the_ledger_are_still_emitted(service, make_run):
    make_run(service().send).run(entries(3))
    run = make_run(service().send)
    run.engine.stop()
    assert outcomes_of(run.run(entries(5))) == ["exists"] * 3 + ["pending"] * 2


def test_entries_that_wait_for_a_permit_are_not_in_doubt(ledger, service, make_run):
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


def test_a_stop_of_a_run_that_is_ending_ends_the_wait(service, make_run):
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


def test_a_stop_during_a_pause_is_immediate(service, make_run):
    run = make_run(service(Throttled("429", retry_after=200.0)).send, channel=WorkerChannel())
    run.observer.waiting = lambda *_: run.engine.stop()
    started = time.monotonic()
    assert len(run.run(entries(30_000))) == 30_000
    assert time.monotonic() - started < 15


def test_a_defect_loses_no_answers_of_other_batches(ledger, service, make_run):
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


def open_intents(path) -> set[tuple[str, str | None]]:
    """What another process would read from the ledger now."""
    with Ledger.open_existing(path, base_url="https://x.example", client_id="me") as ledger:
        return {(intent.sign_domain, intent.selector) for intent in ledger.intents()}


def answers(path) -> set[str]:
    with Ledger.open_existing(path, base_url="https://x.example", client_id="me") as ledger:
        return {found.sign_domain for found in ledger.all()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.mark.parametrize("selector", ["s1", None])
def test_the_intent_is_stored_before_the_request_and_removed_with_the_answer(
    service, make_run, path, selector
):
    server, seen = service(), []

    def send(specs):
        seen.append(open_intents(path))
        return server.send(specs)

    make_run(send, batch_size=2).run(entries(4, selector))
    assert seen == [
        {("d0.example", selector), ("d1.example", selector)},
        {("d2.example", selector), ("d3.example", selector)},
    ]
    assert open_intents(path) == set()


@pytest.mark.parametrize(("selector", "most"), [("s1", 7), (None, 3)])
def test_only_repeatable_batches_are_recorded_ahead(service, make_run, path, selector, most):
    server, seen, emitted = service(), [], []

    def send(specs):
        time.sleep(0.01)  # so that others are in flight
        seen.append(open_intents(path))
        assert {(spec.sign_domain, spec.selector) for spec in specs} <= seen[-1]
        return server.send(specs)

    make_run(send, batch_size=2, concurrency=3).run(
        entries(60, selector),
        lambda result: emitted.append((result.registration.sign_domain, open_intents(path))),
    )
    assert all((domain, selector) not in intents for domain, intents in emitted)
    assert len(emitted) == 60
    assert max(map(len, seen)) == most * 2
    assert open_intents(path) == set()


@pytest.mark.parametrize("selector", ["s1", None])
@pytest.mark.parametrize("error", [NotProcessed("x"), Throttled("x", retry_after=0.0)])
def test_a_batch_that_waits_after_a_refusal_has_no_intent(service, make_run, path, error, selector):
    seen = []

    class WatchedChannel(WorkerChannel):
        def sleep(self, seconds):
            deadline = time.monotonic() + 10  # for the engine to handle it
            while open_intents(path) and time.monotonic() < deadline:
                time.sleep(0.01)
            seen.append(open_intents(path))

    make_run(service(error).send, channel=WatchedChannel()).run(entries(2, selector))
    assert seen == [set()]


def test_answered_entries_are_stored_while_the_rest_is_retried(
    service, make_run, path, make_registration
):
    seen = []

    def second(specs):
        seen.append((answers(path), open_intents(path)))
        return server.answer(specs)

    server = service(Reply((make_registration("d0.example"),)), second)
    make_run(server.send).run(entries(2))
    assert seen == [({"d0.example"}, {("d1.example", "s1")})]


@pytest.mark.parametrize(
    ("step", "selector", "is_open"),
    [(MaybeProcessed("x"), None, True), (MaybeProcessed("x"), "s1", True),
     (NotProcessed("x"), None, False), (RequestRefused("400", "x"), "s1", False),
     (TokenRejected("403"), None, False), (CredentialsError("no secret"), None, False)],
)  # fmt: skip
def test_only_entries_in_doubt_keep_their_intent(service, make_run, path, step, selector, is_open):
    make_run(service(*[step] * 4).send).run(entries(1, selector))
    assert open_intents(path) == ({("d0.example", selector)} if is_open else set())


class TestTheNextRun:
    def test_retries_entries_with_a_selector(self, service, make_run):
        server = service(*[MaybeProcessed("x")] * 4)
        make_run(server.send).run(entries(1))
        assert outcomes_of(make_run(server.send).run(entries(1))) == ["created"]

    def test_never_retries_entries_without_one(self, ledger, service, make_run):
        make_run(service(MaybeProcessed("x")).send).run(entries(2, None))
        server = service()
        again = make_run(server.send).run(entries(3, None))
        assert outcomes_of(again) == ["unknown", "unknown", "created"]
        assert server.sent == [["d2.example"]]
        assert ledger.intents()[0].sent_at in again[0].reason

    def test_retries_them_with_retry_unknown_only(self, ledger, service, make_run):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        again = make_run(service().send, retry_unknown=True).run(entries(1, None))
        assert outcomes_of(again) == ["created"]
        assert ledger.intents() == []

    def test_keeps_the_assigned_selector(self, service, make_run):
        def assign(selector):
            return lambda spec: spec._replace(selector=selector)

        lost = service(*[MaybeProcessed("x")] * 4)
        make_run(lost.send, assign=assign("s202611")).run(entries(1, None))
        server = service()
        for later in ({"assign": assign("s202612")}, {}):
            make_run(server.send, **later).run(entries(1, None))
        assert server.batches == [[DomainSpec("d0.example", "s202611")]]

    def test_assigns_no_selector_where_a_request_without_one_went_unanswered(
        self, service, make_run
    ):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        server = service()
        plan = {"assign": lambda spec: spec._replace(selector="s1")}
        assert outcomes_of(make_run(server.send, **plan).run(entries(1, None))) == ["unknown"]
        again = make_run(server.send, retry_unknown=True, **plan).run(entries(1, None))
        assert outcomes_of(again) == ["created"]
        assert server.batches == [[DomainSpec("d0.example", "s1")]]

    @pytest.mark.parametrize("selector", ["s1", None])
    @pytest.mark.parametrize("error", [NotProcessed("x"), TokenRejected("403"), Throttled("x")])
    def test_stays_in_doubt_after_a_refusal(self, ledger, service, make_run, selector, error):
        make_run(service(*[MaybeProcessed("x")] * 4).send).run(entries(1, selector))
        turned_away = make_run(service(*[error] * 4).send, retry_unknown=True)
        assert outcomes_of(turned_away.run(entries(1, selector))) == ["unknown"]
        assert [intent[:2] for intent in ledger.intents()] == [("d0.example", selector)]

    def test_stays_in_doubt_after_a_stop(self, ledger, service, make_run):
        make_run(service(*[MaybeProcessed("x")] * 4).send).run(entries(1))
        stopped = make_run(service().send)
        stopped.engine.stop()
        assert outcomes_of(stopped.run(entries(1))) == ["unknown"]
        assert len(ledger.intents()) == 1

    def test_does_not_adopt_a_registration_of_another_client(
        self, ledger, service, make_run, make_registration
    ):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        taken = make_registration("d0.example", "mine", code="409", record=None)
        other = make_run(service(Reply((taken,))).send).run(entries(1, "mine"))
        assert outcomes_of(other) == ["taken"]
        server = service()
        assert outcomes_of(make_run(server.send).run(entries(1, None))) == ["unknown"]
        assert server.batches == []

    def test_adopts_an_answer_with_any_selector(self, ledger, service, make_run):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        make_run(service().send).run(entries(1, "mine"))
        server = service()
        assert outcomes_of(make_run(server.send).run(entries(1, None))) == ["exists"]
        assert server.batches == []


class TestTheLedgerFails:
    def test_before_anything_is_sent(self, ledger, service, make_run):
        server = service()
        run = make_run(server.send, batch_size=1)
        ledger.close()
        assert outcomes_of(run.run(entries(2))) == ["pending", "pending"]
        assert server.batches == []
        assert not run.engine.may_have_reached_service
        assert isinstance(run.engine.stopped, LedgerError)
        assert run.engine.stopped.exit_code == 2

    def test_during_the_run_nothing_more_is_sent(self, ledger, service, make_run):
        server = service()
        run = make_run(server.send, batch_size=1)
        results = run.run(entries(3), lambda result: ledger.close())
        assert outcomes_of(results) == ["created", "created", "pending"]
        assert len(server.batches) == 2
        assert run.engine.stopped.exit_code == 4

    def test_what_it_cannot_store_is_still_emitted_and_keeps_its_intent(
        self, service, make_run, path
    ):
        full = sqlite3.connect(path)
        full.execute(
            "CREATE TRIGGER full BEFORE INSERT ON registration "
            "BEGIN SELECT RAISE (ABORT, 'disk full'); END"
        )
        full.close()
        server = service()
        run = make_run(server.send, batch_size=2)
        assert outcomes_of(run.run(entries(4))) == ["created"] * 2 + ["pending"] * 2
        assert len(server.batches) == 1
        assert "disk full" in run.engine.stopped.message
        assert run.engine.stopped.exit_code == 4
        assert open_intents(path) == {("d0.example", "s1"), ("d1.example", "s1")}
