"""A damaged ledger is found before anything is sent, and quarantined."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.opening import quarantining
from dkimctl.ledger.tables import damage_error
from dkimctl.models import DomainSpec

NOON = 1795262400.0  # 2026-11-21T12:00:00Z
QUARANTINED = "ledger.db.damaged-20261121T120000"
PAGE = 4096


def replace(path, start, content=None):
    """Replace what is at `start`, by default the rest of the page by noise."""
    whole = bytearray(path.read_bytes())
    content = content or random.Random(7).randbytes(PAGE - start % PAGE)
    whole[start : start + len(content)] = content
    path.write_bytes(whole)


DAMAGES = {
    "header": lambda path: replace(path, 0, b"x" * 100),
    "first page but header": lambda path: replace(path, 100),
    "middle page": lambda path: replace(path, path.read_bytes().rindex(b"v=DKIM1") // PAGE * PAGE),
    "last page": lambda path: replace(path, path.stat().st_size - PAGE),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut in a page": lambda path: path.write_bytes(path.read_bytes()[: 2 * PAGE + 99]),
    "cut in the header": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "text": lambda path: path.write_text("what the service answered:\n" * 99),
}


def names(path):
    return sorted(file.name for file in path.parent.iterdir() if file.suffix != ".lock")


def use(path, account):
    """Open and check, as every registration does before it sends anything."""
    with Ledger.open(path, **account, clock=lambda: NOON) as ledger:
        ledger.check()


def read_all(path, account):
    with Ledger.open_existing(path, **account) as ledger:
        return list(ledger.all()), ledger.intents()


@pytest.fixture
def filled(write, path, make_registration):
    """A ledger with several pages, at `path`."""
    with write() as ledger:
        ledger.record([make_registration(f"d{number}.example") for number in range(100)])
        ledger.commit(begun=[[DomainSpec(f"d{number}.example", "s2") for number in range(100)]])
    return path


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_ledger_is_reported_to_a_reader_and_quarantined_unchanged(
    filled, account, damage
):
    damage(filled)
    before = filled.read_bytes()
    with pytest.raises(LedgerError, match=r"ledger\.db is damaged: ") as caught:
        read_all(filled, account)
    assert "restore a backup as ledger.db" in caught.value.hint
    assert (filled.read_bytes(), names(filled)[0]) == (before, "ledger.db")
    with pytest.raises(LedgerError, match=r"is damaged: .*; it was quarantined") as caught:
        use(filled, account)
    assert caught.value.message.isprintable(), "one line"
    assert str(filled.with_name(QUARANTINED)) in caught.value.message
    assert "nothing was sent" in caught.value.message
    assert "restore a backup as ledger.db" in caught.value.hint
    assert "--retry-unknown" in caught.value.hint
    assert [name for name in names(filled) if not name.startswith(f"{QUARANTINED}-")] == [
        QUARANTINED
    ]
    assert filled.with_name(QUARANTINED).read_bytes() == before


@pytest.mark.parametrize(
    "entries",
    ["", "17", '{"ab": 1}', "[[null, null]]", '[["a.example", false]]', '[["a", "s1", "s2"]]'],
)
def test_unreadable_open_requests_are_damage_too(entries, path, account, write):
    with write() as ledger:
        ledger.commit(begun=[[DomainSpec("example.com", "s1")]])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE open_request SET entries = ?", (entries,))
    with write() as ledger:
        with pytest.raises(LedgerError, match="is damaged"):
            ledger.intents_of("example.com")
        with pytest.raises(LedgerError, match="quarantined"):
            ledger.check()


def test_an_earlier_quarantined_ledger_is_never_overwritten(filled, account, read):
    for content in "one", "two", "three":
        filled.write_text(content)
        with pytest.raises(LedgerError, match="quarantined"):
            use(filled, account)
    contents = {file.name: file.read_text() for file in filled.parent.glob("*damaged*")}
    assert contents == {QUARANTINED: "one", f"{QUARANTINED}.2": "two", f"{QUARANTINED}.3": "three"}
    with read() as ledger:
        assert ledger.quarantined == filled.with_name(f"{QUARANTINED}.3")


def test_an_emptied_ledger_with_a_log_is_damaged_and_not_new(write, path, account, tmp_path):
    with write() as ledger:
        ledger.commit(begun=[[DomainSpec("example.com", "s1")]])
        shutil.copytree(path.parent, tmp_path / "copy")
    path = tmp_path / "copy" / "ledger.db"
    log = path.with_name("ledger.db-wal").read_bytes()
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="the file is empty"):
        Ledger.open_existing(path, **account)
    assert path.with_name("ledger.db-wal").read_bytes() == log
    with pytest.raises(LedgerError, match=r"the file is empty.* quarantined"):
        use(path, account)
    assert names(path) == [QUARANTINED, f"{QUARANTINED}-shm", f"{QUARANTINED}-wal"]
    assert path.with_name(f"{QUARANTINED}-wal").read_bytes() == log


def test_a_log_without_its_ledger_is_kept(filled, account):
    log = filled.with_name("ledger.db-wal")
    filled.unlink()
    log.write_bytes(b"changes")
    with pytest.raises(LedgerError, match=r"is missing, though ledger\.db-wal"):
        Ledger.open(filled, **account)
    assert (log.read_bytes(), filled.exists()) == (b"changes", False)


def test_a_new_ledger_that_another_run_has_begun_is_left_alone(filled, write):
    def find_damage_too_late():
        with quarantining(filled, lambda: NOON):
            filled.rename(filled.with_name("moved"))
            filled.write_text("new")
            raise damage_error("late")

    with pytest.raises(LedgerError, match="another run of dkimctl has moved it"):
        find_damage_too_late()
    assert filled.read_text() == "new"
    assert names(filled) == ["ledger.db", "moved"]


@pytest.mark.parametrize("table", ["account", "open_request"])
def test_rows_without_ids_are_damage_too(table, path, account, write):
    with write() as ledger:
        ledger.commit(begun=[[DomainSpec("example.com", "s1")]])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'PRIMARY KEY,', 'PRIMARY_KEY,') "
            "WHERE name = ?",
            (table,),
        )
    with pytest.raises(LedgerError, match="is damaged: a row in it has no ID"):
        read_all(path, account)
    with pytest.raises(LedgerError, match="quarantined"):
        use(path, account)
