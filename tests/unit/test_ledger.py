"""What the ledger keeps, and how it fails."""

from __future__ import annotations

import sqlite3
import sys

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger import Ledger
from dkimctl.models import Registration

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "ledger.db"


def test_what_was_recorded_is_there_after_reopening_by_domain_and_selector(path, make_registration):
    full = make_registration(
        "b.example",
        start_date="2027-01-01T00:00+00:00",
        default=0,
        enable=False,
        regist_date="2026-11-21T10:15:30+09:00",
    )
    bare = Registration("a.example", "s1", code="409", message="already registered")
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([full])
        ledger.record([bare])
    with Ledger.open_existing(path, **ACCOUNT) as ledger:
        assert list(ledger.all()) == [bare, full]
        assert ledger.of_domain("b.example") == [full]
        assert ledger.of_domain("c.example") == []


def test_a_new_answer_replaces_the_old_one_and_keeps_its_place(path, make_registration):
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([make_registration(selector="s1"), make_registration(selector="s2")])
        changed = make_registration(selector="S1", code="409")
        ledger.record([changed])
        assert ledger.of_domain("example.com") == [
            changed._replace(selector="s1"),
            make_registration(selector="s2"),
        ]


def test_accounts_do_not_see_each_other(path, make_registration):
    others = [{**ACCOUNT, "client_id": "you"}, {**ACCOUNT, "base_url": "https://other.example"}]
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([make_registration()])
    for other in others:
        with Ledger.open(path, **other) as ledger:
            assert list(ledger.all()) == []


def test_a_reader_makes_no_file(path):
    with Ledger.open_existing(path, **ACCOUNT) as ledger:
        assert list(ledger.all()) == []
    assert not path.parent.exists()


def test_a_reader_neither_waits_for_a_writer_nor_sees_half_its_work(path, make_registration):
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([make_registration()])
    writer = sqlite3.connect(path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM registration")
    with Ledger.open_existing(path, **ACCOUNT) as ledger:
        assert list(ledger.all()) == [make_registration()]
    writer.close()


@pytest.mark.skipif(sys.platform == "win32", reason="file modes are POSIX")
def test_the_state_directory_is_the_users_alone(path):
    Ledger.open(path, **ACCOUNT).close()
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_file_that_is_no_database_is_refused_and_left_alone(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to look at" * 10)
    before = path.read_bytes()
    for open_ in (Ledger.open, Ledger.open_existing):
        with pytest.raises(LedgerError, match=r"ledger\.db.*not a database") as caught:
            open_(path, **ACCOUNT)
        assert "DKIMCTL_STATE_DIR" in caught.value.hint
    assert path.read_bytes() == before


def test_a_ledger_of_a_newer_version_is_refused(path):
    Ledger.open(path, **ACCOUNT).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LedgerError, match="newer dkimctl"):
        Ledger.open(path, **ACCOUNT)


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(LedgerError, match="cannot use the ledger"):
        Ledger.open(tmp_path / "state" / "ledger.db", **ACCOUNT)


def test_a_row_that_somebody_else_damaged_raises_nothing_foreign(path, make_registration):
    with Ledger.open(path, **ACCOUNT) as ledger:
        ledger.record([make_registration()])
        damage = sqlite3.connect(path)
        with damage:
            damage.execute("UPDATE registration SET key_len = 'x', value = x'ff00', code = NULL")
        damage.close()
        (found,) = ledger.all()
    assert found.key_len is None
    assert isinstance(found.record.value, str)
