"""Keys whose life is over: what the ledger keeps, and for how long."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime

import pytest

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import ClosedKey, key_of

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
NOW = datetime(2027, 1, 20, 10, tzinfo=UTC)
OLD, NEW = key_of("example.com", "old"), key_of("example.com", "new")


@pytest.fixture
def ledger(tmp_path, make_registration):
    dates = {"start_date": "2026-01-02T00:00+00:00", "regist_date": "2026-01-01T00:00:00+00:00"}
    with Ledger.open(tmp_path / "ledger.db", **ACCOUNT, clock=NOW.timestamp) as ledger:
        ledger.record([make_registration(selector="old", default=1, **dates)])
        ledger.record([make_registration(selector="new", **dates)])
        ledger.note_replacements({NEW: "old"})
        yield ledger


def registered(ledger):
    return {one.selector: one for one in ledger.all()}


def test_keys_that_were_begun_are_those_without_a_registration(ledger):
    begun = key_of("Example.com", "next")
    ledger.note_replacements({begun: "new"})
    assert ledger.begun_successors() == {begun: "new"}
    ledger.record([registered(ledger)["new"]._replace(selector="NEXT")])
    assert ledger.begun_successors() == {}


@pytest.mark.parametrize(
    "value", ["x'ff'", "CAST(x'ff' AS TEXT)", "1.5", "char(0)", "zeroblob(100000)"]
)
def test_a_closed_key_with_damaged_columns_is_read_without_them(ledger, tmp_path, value):
    ledger.retire(dict.fromkeys(registered(ledger).values(), "next"))
    sound = ledger.closed_keys()[0]
    columns = ("created_at", "started_at", "closed_at", '"default"')
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        changes = ", ".join(f"{column} = {value}" for column in columns)
        connection.execute(f"UPDATE closed_key SET {changes} WHERE selector = 'old'")
    damaged = ClosedKey(*OLD, 0, None, None, "next", None)
    assert ledger.closed_keys() == [sound, damaged]
