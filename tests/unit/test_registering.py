"""What is sent, what is not, and what becomes of it."""

from __future__ import annotations

import sqlite3

import pytest

from dkimctl.client import Reply
from dkimctl.errors import (
    AuthenticationError,
    MaybeProcessed,
    NotProcessed,
    RequestRefused,
    ServiceError,
)
from dkimctl.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, Outcome
from dkimctl.planning import plan
from dkimctl.registering import Registrar


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(
        tmp_path / "ledger.db", base_url="https://x.example", client_id="me"
    ) as ledger:
        yield ledger


class Service:
    """Registers what it is sent; a `script` of errors or replies goes before."""

    def __init__(self, make_registration, script=()) -> None:
        self._make = make_registration
        self._script = list(script)
        self.batches: list[list[DomainSpec]] = []

    def send(self, specs) -> Reply:
        self.batches.append(list(specs))
        if self._script:
            step = self._script.pop(0)
            if isinstance(step, Exception):
                raise step
            if step is not None:
                return step
        return Reply(
            tuple(self._make(spec.sign_domain, spec.selector or "chosen") for spec in specs)
        )


@pytest.fixture
def service(make_registration):
    return lambda *script: Service(make_registration, script)


def outcomes_of(results) -> list[str]:
    return [str(result.outcome) for result in results]


def entries(count: int) -> list[DomainSpec]:
    return [DomainSpec(f"d{number}.example", "s1") for number in range(count)]


def test_a_second_run_sends_nothing_and_tells_the_same(ledger, service):
    specs, first, second = entries(3), service(), service()
    created = list(Registrar(ledger, first.send, batch_size=2).run(specs))
    assert outcomes_of(created) == ["created"] * 3
    assert [len(batch) for batch in first.batches] == [2, 1]
    again = list(Registrar(ledger, second.send, batch_size=2).run(specs))
    assert second.batches == []
    assert outcomes_of(again) == ["exists"] * 3
    assert [result.registration for result in again] == [result.registration for result in created]


def test_results_come_in_the_files_order_though_batches_never_mix_the_kinds(ledger, service):
    specs = [DomainSpec(f"d{n}.example", None if n % 3 else "s1") for n in range(20)]
    server = service()
    results = list(Registrar(ledger, server.send, batch_size=4).run(specs))
    assert [result.registration.sign_domain for result in results] == [s.sign_domain for s in specs]
    assert all(len({spec.selector is None for spec in batch}) == 1 for batch in server.batches)
    assert sum(map(len, server.batches)) == 20


def test_results_come_as_soon_as_they_are_known_and_are_kept_before(ledger, service):
    server = service()
    results = Registrar(ledger, server.send, batch_size=2).run(entries(10))
    next(results)
    assert len(server.batches) == 1
    assert len(list(ledger.all())) == 2


def test_an_entry_that_differs_from_the_ledger_is_not_sent(ledger, service):
    server = service()
    list(Registrar(ledger, server.send, batch_size=9).run(entries(1)))
    asked = entries(1)[0]._replace(key_len=1024)
    (result,) = Registrar(ledger, server.send, batch_size=9).run([asked])
    assert result.outcome is Outcome.DIFFERS
    assert len(server.batches) == 1


def test_refresh_asks_again_with_the_ledgers_selector(ledger, service, make_registration):
    first = service()
    specs = [DomainSpec("a.example"), DomainSpec("b.example")]
    list(Registrar(ledger, first.send, batch_size=9).run(specs[:1]))
    answer = make_registration("a.example", "chosen", code="409")
    server = service(None, Reply((answer,)))
    results = list(Registrar(ledger, server.send, batch_size=9, refresh=True).run(specs))
    sent = {spec.sign_domain: spec.selector for batch in server.batches for spec in batch}
    assert sent == {"a.example": "chosen", "b.example": None}
    assert len(results) == 2


def test_taken_is_remembered_and_asked_again_only_with_refresh(ledger, service, make_registration):
    taken = make_registration("d0.example", "s1", code="409", record=None)
    server = service(Reply((taken,)))
    (result,) = Registrar(ledger, server.send, batch_size=9).run(entries(1))
    assert result.outcome is Outcome.TAKEN
    assert outcomes_of(plan(entries(2), ledger)) == ["taken", "pending"]
    assert outcomes_of(Registrar(ledger, server.send, batch_size=9).run(entries(1))) == ["taken"]
    assert len(server.batches) == 1
    asking = Registrar(ledger, server.send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run(entries(1))) == ["created"]
    assert outcomes_of(plan(entries(1), ledger)) == ["exists"]


@pytest.mark.parametrize(
    "answer",
    [{"record": None}, {"record": DnsRecord("x", "TXT", "garbage")}],
    ids=["without data", "garbage"],
)
def test_a_refresh_never_displaces_a_sound_record_by_none(
    ledger, service, make_registration, answer
):
    list(Registrar(ledger, service().send, batch_size=9).run(entries(1)))
    before = list(ledger.all())
    worse = make_registration("d0.example", "s1", code="409", **answer)
    asking = Registrar(ledger, service(Reply((worse,))).send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run(entries(1))) in (["taken"], ["unusable"])
    assert list(ledger.all()) == before


def test_a_refresh_never_erases_what_its_answer_leaves_out(ledger, service, make_registration):
    asked = entries(1)[0]._replace(enable=False)
    first = make_registration(
        "d0.example", "s1", enable=False, regist_date="2026-11-21T10:00+09:00"
    )
    list(Registrar(ledger, service(Reply((first,))).send, batch_size=9).run([asked]))
    thin = make_registration("d0.example", "s1", code="409", key_len=None)
    asking = Registrar(ledger, service(Reply((thin,))).send, batch_size=9, refresh=True)
    assert outcomes_of(asking.run([asked])) == ["exists"]
    (kept,) = ledger.all()
    assert (kept.enable, kept.regist_date) == (False, first.regist_date)


def test_an_answer_is_told_even_if_the_ledger_cannot_be_read_when_it_comes(
    ledger, service, make_registration
):
    taken = make_registration("d0.example", "s1", code="409", record=None)
    server = service()

    def send(specs):
        server.send(specs)
        ledger.close()
        return Reply((taken,))

    registrar = Registrar(ledger, send, batch_size=1)
    assert outcomes_of(registrar.run(entries(2))) == ["taken", "failed"]
    assert registrar.stopped.exit_code == 4


def test_a_ledger_that_fails_before_anything_was_sent_is_no_more_than_that(ledger, service):
    server = service()
    registrar = Registrar(ledger, server.send, batch_size=1)
    ledger.close()
    assert outcomes_of(registrar.run(entries(2))) == ["failed", "failed"]
    assert server.batches == []
    assert not registrar.answered
    assert registrar.stopped.exit_code == 2


def test_a_ledger_that_fails_on_the_way_stops_the_run(ledger, service):
    server = service()
    registrar = Registrar(ledger, server.send, batch_size=1)
    results = registrar.run(entries(3))
    assert next(results).outcome is Outcome.CREATED
    ledger.close()
    assert outcomes_of(results) == ["created", "failed"]
    assert registrar.stopped.exit_code == 4


@pytest.mark.parametrize("code", ["400", "500"])
def test_what_is_not_registered_is_not_kept(ledger, service, make_registration, code):
    refused = make_registration("d0.example", "s1", code=code, record=None)
    server = service(Reply((refused,)))
    list(Registrar(ledger, server.send, batch_size=9).run(entries(1)))
    assert list(ledger.all()) == []


def test_an_entry_without_an_item_is_unknown_and_a_stray_is_told(
    ledger, service, make_registration
):
    told = []
    reply = Reply(
        (make_registration("d1.example"), make_registration("evil.example")), ("a fault",)
    )
    registrar = Registrar(ledger, service(reply).send, batch_size=9, warn=told.append)
    results = list(registrar.run(entries(2)))
    assert outcomes_of(results) == ["unknown", "created"]
    assert results[0].registration.code is None
    assert "a fault" in told[0]
    assert "evil.example (selector s1)" in told[1]
    assert [found.sign_domain for found in ledger.all()] == ["d1.example"]


def test_when_nobody_can_tell_the_batch_is_unknown_and_the_rest_goes_on(ledger, service):
    server = service(MaybeProcessed("timed out"))
    results = list(Registrar(ledger, server.send, batch_size=2).run(entries(4)))
    assert outcomes_of(results) == ["unknown", "unknown", "created", "created"]
    assert results[0].reason == "timed out"


def test_a_batch_refused_as_a_whole_is_invalid_and_the_rest_goes_on(ledger, service):
    server = service(RequestRefused("413", "too large"))
    results = list(Registrar(ledger, server.send, batch_size=2).run(entries(4)))
    assert outcomes_of(results) == ["invalid", "invalid", "created", "created"]
    assert (results[0].registration.code, results[0].reason) == ("413", "too large")


@pytest.mark.parametrize("error", [NotProcessed("x"), AuthenticationError("x"), ServiceError("x")])
def test_what_cannot_get_better_stops_the_run_and_nothing_more_is_sent(ledger, service, error):
    server = service(None, error)
    registrar = Registrar(ledger, server.send, batch_size=2)
    results = list(registrar.run(entries(6)))
    assert outcomes_of(results) == ["created"] * 2 + ["failed"] * 4
    assert len(server.batches) == 2
    assert registrar.stopped is error
    assert registrar.answered


def test_a_stop_at_the_first_request_is_told_apart(ledger, service):
    registrar = Registrar(ledger, service(NotProcessed("x")).send, batch_size=2)
    assert outcomes_of(registrar.run(entries(2))) == ["failed"] * 2
    assert not registrar.answered


def test_answers_that_the_ledger_cannot_keep_are_still_told_and_end_the_run(
    ledger, service, tmp_path
):
    full = sqlite3.connect(tmp_path / "ledger.db")
    full.execute(
        "CREATE TRIGGER full BEFORE INSERT ON registration "
        "BEGIN SELECT RAISE (ABORT, 'disk full'); END"
    )
    full.close()
    server = service()
    registrar = Registrar(ledger, server.send, batch_size=2)
    assert outcomes_of(registrar.run(entries(4))) == ["created"] * 2 + ["failed"] * 2
    assert len(server.batches) == 1
    assert "disk full" in registrar.stopped.message
    assert registrar.stopped.exit_code == 4
