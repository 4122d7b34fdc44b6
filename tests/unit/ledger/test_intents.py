"""Intents of requests: in the file and in memory, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from dkimctl.errors import LedgerError
from dkimctl.models import DomainSpec, Registration, key_of

SPEC = DomainSpec("a.example", "s1")


@pytest.fixture
def ledger(write):
    with write() as ledger:
        yield ledger


def test_what_another_account_has_does_not_answer_a_request_without_selector(ledger):
    """Its key may be registered, under a selector that the service chose."""
    ledger.commit(begun=[[SPEC, DomainSpec("a.example")]])
    ledger.commit(answered=[Registration("a.example", "s1", code="409")])
    assert [intent[:2] for intent in ledger.intents()] == [("a.example", None)]


def test_no_other_program_can_write_between_what_a_commit_reads_and_writes(ledger, path):
    """Else the commit would fail, after the service has answered."""
    attempts = []

    class Watched(list):
        def __iter__(self):
            try:
                other.execute("UPDATE account SET client_id = 'you'")
            except sqlite3.OperationalError as error:
                attempts.append(str(error))
            return super().__iter__()

    with contextlib.closing(sqlite3.connect(path, timeout=0)) as other:
        ledger.commit(begun=[Watched([SPEC])])
    assert set(attempts) == {"database is locked"}
    assert len(ledger.intents()) == 1


def test_a_failed_commit_changes_neither_the_file_nor_the_cache(ledger, path, make_registration):
    ledger.commit(begun=[[DomainSpec("example.com", "s1")]])
    cached = ledger.intents_of("example.com")
    assert ledger.of_domain("example.com") == []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON open_request WHEN new.entries LIKE '%bad%' "
            "BEGIN SELECT RAISE (ABORT, 'no more'); END"
        )
    with pytest.raises(LedgerError, match="no more"):
        ledger.commit(
            answered=[make_registration()], settled=[key_of("example.com", "s1")],
            begun=[[DomainSpec("x.example", "s1"), DomainSpec("x.example", "bad")]],
        )  # fmt: skip
    assert ledger.of_domain("example.com") == []
    assert ledger.intents_of("example.com") == ledger.intents() == cached
    ledger.commit(answered=[make_registration()], begun=[[DomainSpec("x.example", "s1")]])
    assert ledger.of_domain("example.com") == [make_registration()]
    assert [intent.sign_domain for intent in ledger.intents()] == ["x.example"]


class Interrupted(list):
    """Answers whose n-th iteration is interrupted."""

    def __init__(self, answers, n):
        super().__init__(answers)
        self._left = n

    def __iter__(self):
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt
        return super().__iter__()


def test_the_cache_agrees_with_the_file_after_any_interruption(ledger, read):
    for n in range(1, 6):
        domain = f"d{n}.example"
        ledger.commit(begun=[[DomainSpec(domain, "s1")]])
        assert not ledger.of_domain(domain)
        assert ledger.intents_of(domain)
        with contextlib.suppress(KeyboardInterrupt):
            ledger.commit(answered=Interrupted([Registration(domain, "s1", code="201")], n))
        with read() as reader:
            assert ledger.of_domain(domain) == reader.of_domain(domain)
            assert ledger.intents_of(domain) == reader.intents_of(domain)
            assert not (ledger.of_domain(domain) and ledger.intents_of(domain))


def test_writing_to_a_file_that_was_moved_is_refused(ledger, path, write):
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        path.with_name(name).rename(path.with_name(f"old-{name}"))
    for _ in range(2):
        for use in (lambda: ledger.commit(begun=[[SPEC]]), ledger.check):
            with pytest.raises(LedgerError, match="moved or replaced while it was in use"):
                use()
        write().close()  # another file in its place
