"""The registrations in the ledger."""

from __future__ import annotations

import os
import sqlite3
import sys

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, key_of


def test_a_registration_without_a_record_is_ours_unless_the_service_gave_no_data(
    write, make_registration
):
    """409 without data: another account has it (interface 7.3)."""
    unusable = make_registration("a.example", record=None)
    empty = make_registration("b.example", code="409", record=DnsRecord("", "", ""))
    taken = make_registration("c.example", code="409", record=None)
    with write() as ledger:
        ledger.record([taken, empty, unusable])
        assert list(ledger.ours()) == [unusable, empty]
        assert list(ledger.all()) == [unusable, empty, taken]
        assert {domain for domain, selector in ledger.known_keys() if not selector} == {
            "a.example",
            "b.example",
        }


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
def test_only_the_user_can_access_the_ledger_whatever_the_umask(write, path, make_registration):
    before = os.umask(0)
    try:
        with write() as ledger:
            ledger.record([make_registration()])
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm"), 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_created_is_reported(tmp_path, account):
    (tmp_path / "state").write_text("a file")
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="cannot use the ledger") as caught:
            open_(tmp_path / "state" / "ledger.db", **account)
        assert "DKIMCTL_STATE_DIR" in caught.value.hint


def test_values_of_the_wrong_type_are_converted(write, path, make_registration):
    with write() as ledger:
        ledger.record([make_registration()])
        other = sqlite3.connect(path)
        with other:
            other.execute("UPDATE registration SET key_len = 'x', value = x'ff00', code = NULL")
        other.close()
        (registration,) = ledger.all()
    assert registration.key_len is None
    assert isinstance(registration.record.value, str)


def test_invalid_utf8_in_a_text_column_is_reported(write, path, make_registration):
    with write() as ledger:
        ledger.record([make_registration()])
        other = sqlite3.connect(path)
        with other:
            other.execute("UPDATE registration SET value = CAST(x'ff00' AS TEXT)")
        other.close()
        with pytest.raises(LedgerError, match="cannot use the ledger"):
            list(ledger.all())
