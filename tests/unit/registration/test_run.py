"""One run of `register`, apart from what is sent."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace

import pytest

from dkimctl.errors import LedgerError, MaybeProcessed, NotProcessed, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DomainSpec, Outcome, key_of
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.limits import Limits
from dkimctl.registration.preflight import Planner
from ledgers import histories_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FUTURE = "2026-12-01T00:00+00:00"


@pytest.fixture
def open_ledger(tmp_path):
    path = tmp_path / "ledger.db"
    return lambda: Ledger.open(path, base_url="https://x.example", client_id="me")


@pytest.fixture
def ledger(open_ledger):
    with open_ledger() as ledger:
        yield ledger


class Observer:
    settled = waiting = ending = tick = staticmethod(lambda *_: None)


@pytest.fixture
def make_run(ledger):
    """A run that may send nothing, unless `connect` is given."""

    def make(*specs, of=ledger, connect=lambda: pytest.fail("it connects")):
        engine = RegistrationEngine(
            of, Planner(of, now=NOW), connect,
            observer=Observer(), warn=pytest.fail, limits=Limits(max_wait=1),
        )  # fmt: skip
        return SimpleNamespace(
            engine=engine,
            prepare=partial(engine.prepare, specs),
            execute=partial(engine.execute, specs),
            left_unanswered=partial(engine.left_unanswered, specs),
        )

    return make


def test_the_ledger_knows_what_a_successor_replaces_also_if_it_is_registered_already(
    ledger, make_run, make_registration
):
    """Such as one that another machine has registered, and whose file is run here."""
    ledger.record([make_registration(selector="s2", start_date=FUTURE)])
    make_run(DomainSpec("example.com", "s2", 2048, FUTURE, replaces="s1")).prepare(NOW)
    assert histories_of(ledger)[key_of("example.com", "s2")].replaces == "s1"


def test_a_damaged_ledger_is_quarantined_before_anything_is_sent(tmp_path, open_ledger, make_run):
    with open_ledger() as ledger:
        ledger.commit(begun=[[DomainSpec("example.com", "s1")]])
    with sqlite3.connect(tmp_path / "ledger.db") as other:
        other.execute("UPDATE open_request SET entries = 'rubbish'")
    other.close()
    with open_ledger() as ledger, pytest.raises(LedgerError, match="was quarantined"):
        make_run(DomainSpec("example.com"), of=ledger).prepare(NOW)
    assert list(tmp_path.glob("ledger.db.damaged-*"))


@pytest.mark.parametrize("page", range(2, 12))
def test_nothing_is_sent_with_a_ledger_of_which_any_page_is_damaged(
    tmp_path, open_ledger, make_run, make_registration, page
):
    """Also one that holds nothing about this domain: the answer might not be kept."""
    with open_ledger() as ledger:
        ledger.record([make_registration(f"d{number}.example") for number in range(30)])
        ledger.commit(begun=[[DomainSpec("a.example")]])
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db")) as other:
        other.execute("PRAGMA wal_checkpoint (TRUNCATE)")
    with (tmp_path / "ledger.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(LedgerError, match="was quarantined"), open_ledger() as ledger:
        make_run(DomainSpec("new.example", "s1"), of=ledger).execute(pytest.fail)


def test_requests_that_this_file_does_not_repeat_are_left_unanswered(ledger, make_run):
    ledger.commit(begun=[[DomainSpec("a.example", "s1"), DomainSpec("b.example")]])
    both = ledger.intents()
    assert make_run().left_unanswered() == both
    assert make_run(DomainSpec("a.example", "s2")).left_unanswered() == both
    assert make_run(DomainSpec("A.example", "S1")).left_unanswered() == both[1:]
    without = make_run(DomainSpec("a.example"), DomainSpec("b.example", "s1"))
    assert without.left_unanswered() == both[1:], "one without a selector stands for any"


def failing(error):
    def send(specs):
        raise error

    return lambda: send


def test_a_run_that_ends_before_the_service_got_anything_is_only_an_error(make_run):
    connect = failing(NotProcessed("busy", retry_after=3600.0))
    with pytest.raises(ServiceError, match="busy; it asks to wait 3600 s"):
        make_run(DomainSpec("a.example"), connect=connect).execute(pytest.fail)


def test_a_run_that_ends_after_the_service_may_have_got_a_request_has_results(make_run):
    connect = failing(MaybeProcessed("busy", retry_after=3600.0))
    run, results = make_run(DomainSpec("a.example"), connect=connect), []
    run.execute(results.append)
    assert [result.outcome for result in results] == [Outcome.UNKNOWN]
    assert "busy; it asks to wait 3600 s" in run.engine.stopped.message
