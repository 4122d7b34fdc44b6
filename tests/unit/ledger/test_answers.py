"""What the ledger keeps of the service's answers."""

from __future__ import annotations

import os
import sqlite3
import sys

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec, Registration, key_of


def test_what_was_recorded_is_there_after_reopening_by_domain_and_selector(
    write, read, make_registration
):
    full = make_registration(
        "b.example",
        start_date="2027-01-01T00:00+00:00",
        default=0,
        enable=False,
        regist_date="2026-11-21T10:15:30+09:00",
    )
    bare = Registration("a.example", "s1", code="409", message="already registered")
    with write() as ledger:
        ledger.record([full])
        ledger.record([bare])
    with read() as ledger:
        assert list(ledger.all()) == [bare, full]
        assert ledger.of_domain("b.example") == [full]
        assert ledger.of_domain("c.example") == []


def test_a_new_answer_replaces_the_old_one_and_keeps_its_place(write, make_registration):
    with write() as ledger:
        ledger.record([make_registration(selector="s1"), make_registration(selector="s2")])
        changed = make_registration(selector="S1", code="409")
        ledger.record([changed])
        assert ledger.of_domain("example.com") == [
            changed._replace(selector="s1"),
            make_registration(selector="s2"),
        ]


def test_what_is_recorded_later_is_known_at_once(write, make_registration):
    with write() as ledger:
        assert ledger.of_domain("EXAMPLE.com") == []
        ledger.record([make_registration()])
        assert ledger.of_domain("EXAMPLE.com") == [make_registration()]


def test_accounts_do_not_see_each_other(write, make_registration):
    with write() as ledger:
        ledger.commit(answered=[make_registration()], begun=[[DomainSpec("example.net", "s1")]])
    for other in {"client_id": "you"}, {"base_url": "https://other.example"}:
        with write(**other) as ledger:
            assert list(ledger.all()) == []
            assert ledger.intents() == []
            ledger.commit(settled=[key_of("example.net", "s1")])
    with write() as ledger:
        assert list(ledger.all()) == [make_registration()]
        assert len(ledger.intents()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="file modes are POSIX")
def test_the_ledger_is_the_users_alone_whatever_the_umask(write, path, make_registration):
    before = os.umask(0)
    try:
        with write() as ledger:
            ledger.record([make_registration()])
            modes = {found.name: found.stat().st_mode & 0o777 for found in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm"), 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_told(tmp_path, account):
    (tmp_path / "state").write_text("a file")
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="cannot use the ledger") as caught:
            open_(tmp_path / "state" / "ledger.db", **account)
        assert "DKIMCTL_STATE_DIR" in caught.value.hint


def test_a_row_that_somebody_else_damaged_raises_nothing_foreign(write, path, make_registration):
    with write() as ledger:
        ledger.record([make_registration()])
        damage = sqlite3.connect(path)
        with damage:
            damage.execute("UPDATE registration SET key_len = 'x', value = x'ff00', code = NULL")
        damage.close()
        (found,) = ledger.all()
    assert found.key_len is None
    assert isinstance(found.record.value, str)


def test_what_is_not_text_in_a_text_column_is_told(write, path, make_registration):
    with write() as ledger:
        ledger.record([make_registration()])
        damage = sqlite3.connect(path)
        with damage:
            damage.execute("UPDATE registration SET value = CAST(x'ff00' AS TEXT)")
        damage.close()
        with pytest.raises(LedgerError, match="cannot use the ledger"):
            list(ledger.all())


@pytest.mark.parametrize("name", ["a b#c%41&d=é", "what?mode=memory"])
def test_any_directory_will_do(write, read, tmp_path, make_registration, name):
    if sys.platform == "win32" and "?" in name:
        pytest.skip("no file name of Windows")
    path = tmp_path / name / "ledger.db"
    with write(path=path) as ledger:
        ledger.record([make_registration()])
        assert path.exists()
        with read(path=path) as reader:
            assert list(reader.all()) == [make_registration()]


def test_a_ledger_named_from_the_working_directory_is_found(
    write, read, tmp_path, monkeypatch, make_registration
):
    monkeypatch.chdir(tmp_path)
    relative = tmp_path.relative_to(tmp_path) / "ledger.db"
    with write(path=relative) as ledger:
        ledger.record([make_registration()])
    with read(path=tmp_path / "ledger.db") as ledger:
        assert list(ledger.all()) == [make_registration()]
