"""A damaged ledger is found before anything is sent, and set aside."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import sys

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.errors import damage_error
from dkimctl.ledger.health import quarantining
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec

NOON = 1795262400.0  # 2026-11-21T12:00:00Z
ASIDE = "ledger.db.damaged-20261121T120000"
PAGE = 4096


def random_bytes(size):
    return random.Random(7).randbytes(size)


def replace(path, start, content):
    whole = bytearray(path.read_bytes())
    whole[start : start + len(content)] = content
    path.write_bytes(whole)


def pages_of(path):
    return path.stat().st_size // PAGE


DAMAGES = {
    "header": lambda path: replace(path, 0, random_bytes(100)),
    "first page but header": lambda path: replace(path, 100, random_bytes(PAGE - 100)),
    "middle page": lambda path: replace(path, pages_of(path) // 2 * PAGE, random_bytes(PAGE)),
    "last page": lambda path: replace(path, (pages_of(path) - 1) * PAGE, random_bytes(PAGE)),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut in a page": lambda path: path.write_bytes(path.read_bytes()[: 2 * PAGE + 99]),
    "cut in the header": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "text": lambda path: path.write_text("what the service answered:\n" * 99),
    "short text": lambda path: path.write_text("hello"),
}  # fmt: skip


def names(path):
    return sorted(found.name for found in path.parent.iterdir() if found.suffix != ".lock")


def use(path, account):
    """What every registration does before it sends anything."""
    with Ledger.open(path, **account, clock=lambda: NOON) as ledger:
        ledger.check()


def read_all(path, account):
    with Ledger.open_existing(path, **account) as ledger:
        return list(ledger.all()), ledger.intents()


@pytest.fixture
def filled(write, path, make_registration):
    """A ledger of some pages, at `path`."""
    with write() as ledger:
        ledger.record([make_registration(f"d{number}.example") for number in range(100)])
        ledger.commit(begun=[[DomainSpec(f"d{number}.example", "s2") for number in range(100)]])
    return path


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_ledger_is_set_aside_as_it_is(filled, account, damage):
    damage(filled)
    before = filled.read_bytes()
    with pytest.raises(
        LedgerError, match=r"ledger\.db is damaged: .*; it was quarantined"
    ) as caught:
        use(filled, account)
    assert caught.value.message.isprintable(), "it is one line"
    assert str(filled.with_name(ASIDE)) in caught.value.message
    assert "nothing was sent" in caught.value.message
    assert "restore a backup as ledger.db" in caught.value.hint
    assert "--retry-unknown" in caught.value.hint
    assert names(filled) == [ASIDE]
    assert filled.with_name(ASIDE).read_bytes() == before


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_reader_tells_of_damage_and_changes_nothing(filled, account, damage):
    damage(filled)
    before = filled.read_bytes()
    with pytest.raises(LedgerError, match=r"ledger\.db is damaged: ") as caught:
        read_all(filled, account)
    assert "restore a backup as ledger.db" in caught.value.hint
    assert filled.read_bytes() == before
    assert not [name for name in names(filled) if "damaged" in name]


@pytest.mark.parametrize(
    "entries",
    [
        "", "[[1]]", "{", "17", '["a.example"]', '["ab"]', '{"ab": 1}', "[[1, 2]]",
        "[[null, null]]", '[["a.example", []]]', '[["a.example", false]]',
        '[["a.example", "s1", "s2"]]',
    ],
)  # fmt: skip
def test_sendings_that_nobody_can_read_are_damage_too(entries, path, account, write):
    with write() as ledger:
        ledger.commit(begun=[[DomainSpec("example.com", "s1")]])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE sending SET entries = ?", (entries,))
    with write() as ledger:
        with pytest.raises(LedgerError, match="is damaged"):
            ledger.intents_of("example.com")
        with pytest.raises(LedgerError, match="quarantined"):
            ledger.check()


@pytest.mark.parametrize("table", ["account", "sending"])
def test_rows_whose_ids_are_gone_are_damage_too(table, path, account, write):
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


def test_the_new_ledger_knows_of_its_gaps(filled, account, write, read):
    with write() as ledger:
        assert ledger.quarantined is None
    DAMAGES["text"](filled)
    with pytest.raises(LedgerError):
        write()
    with read() as ledger:
        assert ledger.quarantined is not None
    with write() as ledger:
        assert ledger.quarantined is not None
        assert list(ledger.all()) == ledger.intents() == []
    filled.with_name(names(filled)[1]).unlink()
    with write() as ledger:
        assert ledger.quarantined is None


def test_one_that_was_set_aside_before_is_never_overwritten(filled, account):
    for content in "one", "two", "three":
        filled.write_text(content)
        with pytest.raises(LedgerError, match="quarantined"):
            use(filled, account)
    found = {found.name: found.read_text() for found in filled.parent.glob("*damaged*")}
    assert found == {ASIDE: "one", f"{ASIDE}.2": "two", f"{ASIDE}.3": "three"}


def test_an_emptied_ledger_is_no_new_one_while_its_log_is_there(write, path, account, tmp_path):
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
    assert names(path) == [ASIDE, f"{ASIDE}-shm", f"{ASIDE}-wal"]
    assert path.with_name(f"{ASIDE}-wal").read_bytes() == log


def test_an_emptied_ledger_is_no_new_one(filled, account):
    filled.write_bytes(b"")
    with pytest.raises(LedgerError, match="the file is empty"):
        Ledger.open_existing(filled, **account)
    with pytest.raises(LedgerError, match=r"the file is empty.* quarantined"):
        use(filled, account)
    with Ledger.open(filled, **account) as ledger:
        assert ledger.quarantined is not None


def test_a_log_without_its_ledger_is_not_lost_to_a_new_one(filled, account):
    log = filled.with_name("ledger.db-wal")
    filled.unlink()
    log.write_bytes(b"changes")
    with pytest.raises(LedgerError, match=r"is missing, though ledger\.db-wal") as caught:
        Ledger.open(filled, **account)
    assert "put ledger.db back" in caught.value.hint
    assert log.read_bytes() == b"changes"
    assert not filled.exists()


def test_damage_that_comes_to_light_later_is_told_and_left_to_the_next_run(
    filled, write, make_registration
):
    with write() as ledger:
        DAMAGES["middle page"](filled)
        DAMAGES["last page"](filled)
        with pytest.raises(LedgerError, match="is damaged") as caught:
            list(ledger.all())
        assert "dkimctl register" in caught.value.hint
        assert names(filled)[0] == "ledger.db"
        with pytest.raises(LedgerError, match="quarantined"):
            ledger.check()
        with pytest.raises(LedgerError, match="moved or replaced"):
            ledger.record([make_registration()])


def test_what_another_run_has_moved_already_is_left_in_peace(filled, write):
    def find_damage_too_late():
        with quarantining(filled, lambda: NOON):
            filled.rename(filled.with_name("moved"))
            filled.write_text("new")
            raise damage_error("late")

    with pytest.raises(LedgerError, match="another run of dkimctl has moved it"):
        find_damage_too_late()
    assert filled.read_text() == "new"
    assert names(filled) == ["ledger.db", "moved"]


def test_other_trouble_moves_nothing(filled):
    error = sqlite3.OperationalError("disk I/O error")
    with pytest.raises(sqlite3.OperationalError), quarantining(filled, lambda: NOON):
        raise error
    assert names(filled) == ["ledger.db"]


def test_a_sound_ledger_passes(filled, account):
    use(filled, account)
    assert names(filled) == ["ledger.db"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_ledger_behind_a_link_is_set_aside_where_it_is(filled, account, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(filled)
    DAMAGES["text"](filled)
    with pytest.raises(LedgerError, match="quarantined"):
        use(link, account)
    assert names(filled) == [ASIDE]
    use(link, account)
    assert names(filled) == ["ledger.db", ASIDE]
    assert link.is_symlink()


def test_a_damaged_ledger_that_cannot_be_moved_is_told(elsewhere):
    path = elsewhere.path / "ledger.db"
    path.write_text("not a database")
    path.chmod(0o666)
    elsewhere.path.chmod(0o555)
    said = elsewhere.run(
        "try:\n    Ledger.open(path, **ACCOUNT)\n"
        "except LedgerError as error:\n    print(error.message, error.hint)",
        path,
    )
    assert "is damaged: file is not a database; it cannot be quarantined: Permission denied" in said
    assert "restore a backup" in said
    assert path.read_text() == "not a database"
