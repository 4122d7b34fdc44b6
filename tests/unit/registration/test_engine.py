"""What a run sends, emits and stores, also when it is stopped or killed."""

from __future__ import annotations

import contextlib
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
from dkimctl.models import DomainSpec, Outcome, Result
from dkimctl.registration.batches import BatchEntry
from dkimctl.registration.engine import persist
from dkimctl.registration.limits import WorkerChannel
from fakes import entries

LOST = MaybeProcessed("x")


def domains_of(registrations) -> set[str]:
    return {registration.sign_domain.partition(".")[0] for registration in registrations}


def open_intents(path) -> set[tuple[str, str | None]]:
    """What another process would read from the ledger now."""
    with Ledger.open_existing(path, base_url="https://x.example", client_id="me") as ledger:
        return {(intent.sign_domain, intent.selector) for intent in ledger.intents()}


@pytest.mark.interface("2.3", "several")
@pytest.mark.interface("8", "batch-size")
def test_a_second_run_sends_nothing_and_gives_the_same_results(ledger, register):
    seen = []
    first = register(
        entries(3), batch_size=2, on_result=lambda result: seen.append(len(list(ledger.all())))
    )
    assert first.outcomes == ["created"] * 3
    assert [len(batch) for batch in first.server.batches] == [2, 1]
    assert seen[0] == 2, "what is emitted is in the ledger"
    again = register(entries(3), batch_size=2)
    assert (again.server.batches, again.outcomes) == ([], ["exists"] * 3)
    assert [one.registration for one in again.results] == [
        one.registration for one in first.results
    ]


def test_entries_without_a_selector_have_batches_of_their_own(register):
    """Only a request without them can be repeated safely."""
    specs = [DomainSpec(f"d{n}", "s1" if word == "s" else None) for n, word in enumerate("scscss")]
    run = register(specs, batch_size=3)
    assert run.server.sent == [["d0", "d2", "d4"], ["d1", "d3"], ["d5"]]


@pytest.mark.parametrize(
    ("start_date", "sent"),
    [
        ("2026-07-01T00:00:00Z", "2026-07-01T00:00+00:00"),
        ("2026-07-01T00:00:01Z", None),  # no request can state it
        (None, None),
    ],
)
def test_refresh_asks_for_the_key_as_it_is_and_not_for_a_new_one(
    ledger, make_registration, register, start_date, sent
):
    known = make_registration("a.example", "chosen", key_len=1024, start_date=start_date)
    ledger.record([known])
    spec = DomainSpec("a.example", None, default=0, enable=True)
    run = register([spec], Reply((known._replace(code="409"),)), refresh=True)
    assert run.server.batches == [[DomainSpec("a.example", "chosen", 1024, sent, 0, True)]]
    assert run.outcomes == ["exists"]


@pytest.mark.parametrize(
    ("outcome", "fields", "kept"),
    [
        (Outcome.UNUSABLE, {"selector": "s2", "record": None}, ["s1", "s2"]),
        (Outcome.TAKEN, {"selector": "s2", "record": None}, ["s1", "s2"]),
        # Never in place of a sound key; one that names no selector would count as the newest.
        (Outcome.UNUSABLE, {"selector": "S1", "record": None}, ["s1"]),
        (Outcome.UNUSABLE, {"selector": None, "record": None}, ["s1"]),
        (Outcome.TAKEN, {"selector": "S1", "record": None}, ["s1"]),
        (Outcome.INVALID, {"selector": "s2"}, ["s1"]),
        (Outcome.FAILED, {"selector": "s2"}, ["s1"]),
        (Outcome.UNKNOWN, {"selector": "s2"}, ["s1"]),
    ],
)
def test_what_an_answer_leaves_beside_a_sound_key(ledger, make_registration, outcome, fields, kept):
    sound = make_registration()
    ledger.record([sound])
    registration = sound._replace(**fields)
    entry = BatchEntry(DomainSpec("example.com", registration.selector))
    persist(ledger, [(entry, Result(registration, outcome))], [])
    known = ledger.of_domain("example.com")
    assert ([one.selector for one in known], known[0]) == (kept, sound)


class TestAStop:
    def test_waits_for_what_is_in_flight_no_longer_than_the_grace_period(self, ledger, register):
        release = threading.Event()

        def before(specs, run):
            if len(run.server.batches) == 1:
                run.engine.stop()
                release.wait(20)

        started = time.monotonic()
        run = register(entries(6), before=before, batch_size=2, grace=0.1)
        release.set()
        assert time.monotonic() - started < 15
        assert run.outcomes == ["created"] * 2 + ["unknown"] * 2 + ["pending"] * 2
        assert "stopped" in run.results[2].reason
        assert domains_of(ledger.intents()) == {"d2", "d3"}

    def test_entries_that_wait_for_a_permit_are_not_in_doubt(self, ledger, register):
        """The second half of a batch, while the first is in flight and gets no answer."""
        release = threading.Event()

        def before(specs, run):
            if len(specs) > 2:
                raise RequestRefused("413", "too large")
            run.engine.stop()
            release.wait(20)

        run = register(entries(4, None), before=before, batch_size=4, grace=0.2)
        release.set()
        assert run.outcomes == ["unknown"] * 2 + ["pending"] * 2
        assert domains_of(ledger.intents()) == {"d0", "d1"}
        assert run.engine.may_have_reached_service

    def test_of_a_run_that_is_ending_ends_the_wait(self, register):
        release, failed = threading.Event(), NoService("the service answered 404")

        def before(specs, run):
            run.observer.ending = lambda *_: run.engine.stop()
            if specs[0].sign_domain == "d2.example":
                raise failed
            if specs[0].sign_domain != "d0.example":
                release.wait(20)

        started = time.monotonic()
        run = register(entries(8), before=before, batch_size=1, concurrency=4, grace=60.0)
        release.set()
        assert time.monotonic() - started < 15
        assert isinstance(run.engine.stopped, Interrupted)
        assert (run.warned, run.outcomes[0]) == ([failed.message], "created")

    @pytest.mark.parametrize(
        ("error", "count", "outcome"),
        [(MaybeProcessed, 2, "unknown"), (Throttled, 30_000, "pending")],
    )
    def test_ends_a_pause_at_once(self, register, error, count, outcome):
        def before(specs, run):
            run.observer.waiting = lambda *_: run.engine.stop()

        started = time.monotonic()
        steps = [error("x", retry_after=200.0)] * 4
        run = register(entries(count), *steps, before=before, channel=WorkerChannel(), grace=60.0)
        assert run.outcomes == [outcome] * count
        assert time.monotonic() - started < 15
        assert len(run.server.batches) == 1


def test_a_defect_loses_no_answers_of_other_batches(ledger, register):
    both = threading.Barrier(2)

    def before(specs, run):
        if len(run.server.batches) >= 2:
            both.wait(20)
            if specs[0].sign_domain == "d3.example":
                raise ZeroDivisionError
            time.sleep(0.2)

    with pytest.raises(ZeroDivisionError):
        register(entries(4), before=before, batch_size=1, concurrency=2)
    assert domains_of(ledger.all()) == {"d0", "d1", "d2"}
    assert domains_of(ledger.intents()) == {"d3"}


class TestIntents:
    @pytest.mark.parametrize(("selector", "most"), [("s1", 7), (None, 3)])
    def test_only_of_repeatable_batches_are_stored_ahead(self, register, path, selector, most):
        seen, emitted = [], []

        def before(specs, run):
            time.sleep(0.01)  # so that others are in flight
            seen.append(open_intents(path))
            assert {(spec.sign_domain, spec.selector) for spec in specs} <= seen[-1]

        def on_result(result):
            emitted.append((result.registration.sign_domain, open_intents(path)))

        register(
            entries(60, selector), before=before, on_result=on_result, batch_size=2, concurrency=3
        )
        assert all((domain, selector) not in intents for domain, intents in emitted)
        assert len(emitted) == 60
        assert max(map(len, seen)) == most * 2
        assert open_intents(path) == set()

    @pytest.mark.parametrize(
        ("step", "selector", "is_open"),
        [(LOST, None, True), (LOST, "s1", True), (NotProcessed("x"), None, False),
         (RequestRefused("400", "x"), "s1", False), (TokenRejected("403"), None, False),
         (CredentialsError("no secret"), None, False)],
    )  # fmt: skip
    def test_stay_only_of_entries_in_doubt(self, register, path, step, selector, is_open):
        register(entries(1, selector), *[step] * 4)
        assert open_intents(path) == ({("d0.example", selector)} if is_open else set())


class TestTheNextRun:
    def test_retries_entries_without_a_selector_only_with_retry_unknown(self, ledger, register):
        register(entries(2, None), LOST)
        again = register(entries(3, None))
        assert again.outcomes == ["unknown", "unknown", "created"]
        assert again.server.sent == [["d2.example"]]
        assert ledger.intents()[0].sent_at in again.results[0].reason
        assert register(entries(2, None), retry_unknown=True).outcomes == ["created"] * 2
        assert ledger.intents() == []

    def test_assigns_none_where_a_request_without_one_went_unanswered(self, register):
        register(entries(1, None), LOST)
        assert register(entries(1, None), selector_for=lambda domain: "s1").outcomes == ["unknown"]
        again = register(entries(1, None), retry_unknown=True, selector_for=lambda domain: "s1")
        assert again.outcomes == ["created"]
        assert again.server.batches == [[DomainSpec("d0.example", "s1")]]

    @pytest.mark.parametrize("selector", ["s1", None])
    @pytest.mark.parametrize("error", [NotProcessed("x"), TokenRejected("403"), Throttled("x")])
    def test_stays_in_doubt_after_a_refusal(self, ledger, register, selector, error):
        register(entries(1, selector), *[LOST] * 4)
        again = register(entries(1, selector), *[error] * 4, retry_unknown=True)
        assert again.outcomes == ["unknown"]
        assert [intent[:2] for intent in ledger.intents()] == [("d0.example", selector)]

    @pytest.mark.parametrize("is_taken", [True, False])
    def test_adopts_an_answer_with_any_selector_unless_it_is_another_clients(
        self, ledger, register, make_registration, is_taken
    ):
        register(entries(1, None), LOST)
        taken = make_registration("d0.example", "mine", code="409", record=None)
        register(entries(1, "mine"), Reply((taken,)) if is_taken else None)
        again = register(entries(1, None))
        assert again.outcomes == ["unknown" if is_taken else "exists"]
        assert again.server.batches == []


class TestTheLedgerFails:
    def test_before_anything_is_sent(self, ledger, register):
        ledger.close()
        run = register(entries(2), batch_size=1)
        assert (run.outcomes, run.server.batches) == (["pending", "pending"], [])
        assert not run.engine.may_have_reached_service
        assert isinstance(run.engine.stopped, LedgerError)
        assert run.engine.stopped.exit_code == 2

    def test_during_the_run_nothing_more_is_sent(self, ledger, register):
        run = register(entries(3), batch_size=1, on_result=lambda result: ledger.close())
        assert run.outcomes == ["created", "created", "pending"]
        assert len(run.server.batches) == 2
        assert run.engine.stopped.exit_code == 4

    def test_what_it_cannot_store_is_still_yielded_and_keeps_its_intent(self, register, path):
        with contextlib.closing(sqlite3.connect(path)) as full:
            full.execute(
                "CREATE TRIGGER full BEFORE INSERT ON registration "
                "BEGIN SELECT RAISE (ABORT, 'disk full'); END"
            )
        run = register(entries(4), batch_size=2)
        assert run.outcomes == ["created"] * 2 + ["pending"] * 2
        assert len(run.server.batches) == 1
        stopped = run.engine.stopped
        assert "disk full; some answers of the service are not in the ledger" in stopped.message
        assert (stopped.exit_code, stopped.hint.partition(";")[0]) == (4, "save this output")
        assert open_intents(path) == {("d0.example", "s1"), ("d1.example", "s1")}


def test_stray_items_and_faults_are_reported(ledger, make_registration, register):
    items = make_registration("d0.example"), make_registration("evil.example")
    run = register(entries(1), Reply(items, ("a fault",)))
    assert run.outcomes == ["created"]
    assert "a fault" in run.warned[0]
    assert "evil.example (selector s1)" in run.warned[1]
    assert domains_of(ledger.all()) == {"d0"}
