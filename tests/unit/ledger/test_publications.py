"""Publications: since when the ledger knows that a record is in DNS."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime

import pytest

from dkimctl.errors import LedgerError
from dkimctl.models.registration import DomainSpec, Registration, key_of
from fakes import Clock

NOON = 1795262400.0  # 2026-11-21T12:00:00Z
AT_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = 86400
FIRST, SECOND = key_of("example.com", "s1"), key_of("example.net", "s1")


@pytest.fixture
def clock():
    """`now` is the ledger's time, in seconds since the epoch."""
    return Clock(NOON)


@pytest.fixture
def ledger(write, clock):
    with write(clock=clock) as ledger:
        yield ledger


def damage(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def test_the_first_time_a_record_is_seen_is_kept(ledger, read, clock):
    ledger.note_publications([FIRST])
    clock.now += DAY
    ledger.note_publications(iter([key_of("EXAMPLE.com", "S1"), SECOND]), iter([]))
    with read() as reader:
        assert reader.publications() == {
            FIRST: AT_NOON,
            SECOND: AT_NOON.replace(day=22),
        }


def test_a_record_that_vanished_gets_a_new_time(ledger, clock):
    ledger.note_publications([FIRST, SECOND])
    ledger.note_publications([], [key_of("Example.com", "S1")])
    assert ledger.publications() == {SECOND: AT_NOON}
    clock.now += DAY
    ledger.note_publications([FIRST])
    assert ledger.publications()[FIRST] == AT_NOON.replace(day=22)


def test_noting_no_publications_touches_no_file(ledger, path):
    before = path.stat().st_mtime_ns, path.with_name("ledger.db-wal").stat().st_mtime_ns
    ledger.note_publications([], [])
    assert before == (path.stat().st_mtime_ns, path.with_name("ledger.db-wal").stat().st_mtime_ns)


def test_accounts_do_not_see_each_others_publications(ledger, write):
    ledger.note_publications([FIRST])
    with write(client_id="you") as other:
        assert other.publications() == {}
        other.note_publications([], [FIRST])
    assert ledger.publications() == {FIRST: AT_NOON}


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "2026-11-21T12:00:00", "2026-99-99T12:00:00+00:00", 17, 1.5, b"\xff\x00",
     "0001-01-01T00:00:00+14:00", "9" * 5000],
)  # fmt: skip
def test_an_invalid_time_is_ignored_and_replaced_by_the_next_one(ledger, path, clock, value):
    ledger.note_publications([FIRST, SECOND])
    damage(
        path,
        "UPDATE publication SET published_at = ? WHERE sign_domain = ?",
        value,
        FIRST.sign_domain,
    )
    assert ledger.publications() == {SECOND: AT_NOON}
    ledger.note_publications([FIRST])
    assert ledger.publications() == {FIRST: AT_NOON, SECOND: AT_NOON}


def test_a_time_that_is_not_text_is_ignored_too(ledger, path):
    ledger.note_publications([FIRST])
    damage(path, "UPDATE publication SET published_at = CAST(x'ff00' AS TEXT)")
    assert ledger.publications() == {}


def test_a_name_that_is_not_text_is_reported(ledger, path):
    ledger.note_publications([FIRST])
    damage(path, "UPDATE publication SET sign_domain = CAST(x'ff00' AS TEXT)")
    with pytest.raises(LedgerError, match="cannot use the ledger"):
        ledger.publications()


def test_publications_are_noted_all_or_none(ledger):
    ledger.note_publications([FIRST])
    with pytest.raises(LedgerError):
        ledger.note_publications([SECOND, key_of("\ud800.example", "s1")], [FIRST])
    assert ledger.publications() == {FIRST: AT_NOON}


NOTE = """
with Ledger.open(path, **ACCOUNT) as ledger:
    ledger.note_publications([key_of("example.com", "s1")])
print("done")
"""


def test_publications_can_be_noted_while_another_run_registers(write, start, make_registration):
    with write() as registering:
        registering.commit(
            answered=[make_registration()], begun=[[DomainSpec("example.net", "s2")]]
        )
        process = start(NOTE)
        assert process.communicate()[0] == "done\n"
        registering.commit(answered=[make_registration("example.net", "s2")])
        assert registering.intents() == []
        assert set(registering.publications()) == {("example.com", "s1")}


def test_forgetting_removes_registration_and_publication_but_not_intents(
    ledger, read, make_registration
):
    old, new = make_registration(selector="s1"), make_registration(selector="s2")
    ledger.commit(
        answered=[old, new], begun=[[DomainSpec("example.com", "s1")], [DomainSpec("example.net")]]
    )
    ledger.note_publications([key_of("example.com", "s1"), key_of("example.com", "s2")])
    assert ledger.of_domain("example.com") == [old, new]
    ledger.forget([Registration("EXAMPLE.com", "S1"), Registration("absent.example")])
    with read() as reader:
        for one in ledger, reader:
            assert list(one.all()) == one.of_domain("example.com") == [new]
            assert set(one.publications()) == {("example.com", "s2")}
            assert len(one.intents()) == 2


def test_a_forgotten_domain_can_be_recorded_again(ledger, make_registration):
    ledger.record([make_registration()])
    assert ledger.of_domain("example.com")
    ledger.forget([Registration("example.com", "s1")])
    assert ledger.of_domain("example.com") == []
    ledger.record([make_registration()])
    assert ledger.of_domain("example.com") == [make_registration()]


def test_accounts_forget_only_their_own_registrations(ledger, write, make_registration):
    ledger.record([make_registration()])
    with write(client_id="you") as other:
        other.forget([Registration("example.com", "s1")])
    assert list(ledger.all()) == [make_registration()]
