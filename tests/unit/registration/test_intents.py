"""Intents in the ledger at every moment, so that a kill loses nothing."""

from __future__ import annotations

import sqlite3
import time

import pytest

from dkimctl.client.wire import Reply
from dkimctl.errors import (
    CredentialsError,
    LedgerError,
    MaybeProcessed,
    NotProcessed,
    RequestRefused,
    Throttled,
    TokenRejected,
)
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DomainSpec
from dkimctl.registration.limits import WorkerChannel


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
    service, make_run, entries, path, selector
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
def test_only_repeatable_batches_are_recorded_ahead(
    service, make_run, entries, path, selector, most
):
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
def test_a_batch_that_waits_after_a_refusal_has_no_intent(
    service, make_run, entries, path, error, selector
):
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
    service, make_run, entries, path, make_registration
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
def test_only_entries_in_doubt_keep_their_intent(
    service, make_run, entries, path, step, selector, is_open
):
    make_run(service(*[step] * 4).send).run(entries(1, selector))
    assert open_intents(path) == ({("d0.example", selector)} if is_open else set())


class TestTheNextRun:
    def test_retries_entries_with_a_selector(self, service, make_run, entries, outcomes_of):
        server = service(*[MaybeProcessed("x")] * 4)
        make_run(server.send).run(entries(1))
        assert outcomes_of(make_run(server.send).run(entries(1))) == ["created"]

    def test_never_retries_entries_without_one(
        self, ledger, service, make_run, entries, outcomes_of
    ):
        make_run(service(MaybeProcessed("x")).send).run(entries(2, None))
        server = service()
        again = make_run(server.send).run(entries(3, None))
        assert outcomes_of(again) == ["unknown", "unknown", "created"]
        assert server.sent == [["d2.example"]]
        assert ledger.intents()[0].sent_at in again[0].reason

    def test_retries_them_with_retry_unknown_only(
        self, ledger, service, make_run, entries, outcomes_of
    ):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        again = make_run(service().send, retry_unknown=True).run(entries(1, None))
        assert outcomes_of(again) == ["created"]
        assert ledger.intents() == []

    def test_keeps_the_assigned_selector(self, service, make_run, entries, outcomes_of):
        def assign(selector):
            return lambda spec: spec._replace(selector=selector)

        lost = service(*[MaybeProcessed("x")] * 4)
        make_run(lost.send, assign=assign("s202611")).run(entries(1, None))
        server = service()
        for plan in ({"assign": assign("s202612")}, {}):
            make_run(server.send, **plan).run(entries(1, None))
        assert server.batches == [[DomainSpec("d0.example", "s202611")]]

    def test_assigns_no_selector_where_a_request_without_one_went_unanswered(
        self, service, make_run, entries, outcomes_of
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
    def test_stays_in_doubt_after_a_refusal(
        self, ledger, service, make_run, entries, outcomes_of, selector, error
    ):
        make_run(service(*[MaybeProcessed("x")] * 4).send).run(entries(1, selector))
        turned_away = make_run(service(*[error] * 4).send, retry_unknown=True)
        assert outcomes_of(turned_away.run(entries(1, selector))) == ["unknown"]
        assert [intent[:2] for intent in ledger.intents()] == [("d0.example", selector)]

    def test_stays_in_doubt_after_a_stop(self, ledger, service, make_run, entries, outcomes_of):
        make_run(service(*[MaybeProcessed("x")] * 4).send).run(entries(1))
        stopped = make_run(service().send)
        stopped.engine.stop()
        assert outcomes_of(stopped.run(entries(1))) == ["unknown"]
        assert len(ledger.intents()) == 1

    def test_does_not_adopt_a_registration_of_another_client(
        self, ledger, service, make_run, entries, outcomes_of, make_registration
    ):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        taken = make_registration("d0.example", "mine", code="409", record=None)
        other = make_run(service(Reply((taken,))).send).run(entries(1, "mine"))
        assert outcomes_of(other) == ["taken"]
        server = service()
        assert outcomes_of(make_run(server.send).run(entries(1, None))) == ["unknown"]
        assert server.batches == []

    def test_adopts_an_answer_with_any_selector(
        self, ledger, service, make_run, entries, outcomes_of
    ):
        make_run(service(MaybeProcessed("x")).send).run(entries(1, None))
        make_run(service().send).run(entries(1, "mine"))
        server = service()
        assert outcomes_of(make_run(server.send).run(entries(1, None))) == ["exists"]
        assert server.batches == []


class TestTheLedgerFails:
    def test_before_anything_is_sent(self, ledger, service, make_run, entries, outcomes_of):
        server = service()
        run = make_run(server.send, batch_size=1)
        ledger.close()
        assert outcomes_of(run.run(entries(2))) == ["pending", "pending"]
        assert server.batches == []
        assert not run.engine.may_have_reached_service
        assert isinstance(run.engine.stopped, LedgerError)
        assert run.engine.stopped.exit_code == 2

    def test_during_the_run_nothing_more_is_sent(
        self, ledger, service, make_run, entries, outcomes_of
    ):
        server = service()
        run = make_run(server.send, batch_size=1)
        results = run.run(entries(3), lambda result: ledger.close())
        assert outcomes_of(results) == ["created", "created", "pending"]
        assert len(server.batches) == 2
        assert run.engine.stopped.exit_code == 4

    def test_what_it_cannot_store_is_still_emitted_and_keeps_its_intent(
        self, service, make_run, entries, outcomes_of, path
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
