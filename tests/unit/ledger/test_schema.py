"""Ledgers of other versions, and their migration."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import DnsRecord, DomainSpec, Registration, key_of

# As version 1 wrote it.
VERSION_1 = """
CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  base_url TEXT NOT NULL,
  client_id TEXT NOT NULL,
  UNIQUE (base_url, client_id)
);
CREATE TABLE registration (
  id INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  key_len INTEGER,
  start_date TEXT,
  "default" INTEGER,
  enable INTEGER,
  fqdn TEXT,
  type TEXT,
  value TEXT,
  regist_date TEXT,
  code TEXT,
  message TEXT,
  UNIQUE (account_id, sign_domain, selector)
);
PRAGMA user_version = 1;
INSERT INTO account VALUES (1, 'https://other.example', 'me'), (2, 'https://api.example', 'me');
INSERT INTO registration VALUES
  (1, 2, 'example.com', 's1', 2048, NULL, 1, 1, 's1._domainkey.example.com', 'TXT', 'v=DKIM1; p=x',
   '2026-11-21T10:15:30+09:00', '201', 'created');
"""
# What version 2 added.
VERSION_2 = """
CREATE TABLE sending (
  id INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account (id),
  sent_at TEXT NOT NULL,
  entries TEXT NOT NULL
);
PRAGMA user_version = 2;
"""
# What version 3 added; and registrations in all states, of which some are published.
VERSION_3 = """
CREATE TABLE publication (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  published_at TEXT NOT NULL,
  PRIMARY KEY (account_id, sign_domain, selector)
);
PRAGMA user_version = 3;
INSERT INTO registration (account_id, sign_domain, selector, enable, value, regist_date, code)
VALUES
  (2, 'example.com', 'off', 0, 'v', '2026-11-21T10:15:30+09:00', '201'),
  (2, 'example.com', 'undated', 1, 'v', 'soon', '201'),
  (2, 'example.com', 'dateless', 1, 'v', NULL, '201'),
  (2, 'example.net', 'exists', 1, 'v', '2026-11-21T10:15:30+09:00', '409'),
  (2, 'example.net', 'silent', NULL, 'v', '2026-11-21T10:15:30+09:00', '409'),
  (2, 'example.net', 'off', 0, 'v', '2026-11-21T10:15:30+09:00', '409'),
  (2, 'example.net', 'taken', NULL, NULL, NULL, '409'),
  (2, 'example.org', 'odd', x'ff', 'v', 17, x'00');
INSERT INTO publication VALUES
  (2, 'EXAMPLE.com', 'S1', '2026-11-22T00:00:00+00:00'),
  (2, 'example.net', 'exists', '2026-11-23T00:00:00+00:00'),
  (2, 'example.net', 'forgotten', '2026-11-23T00:00:00+00:00'),
  (1, 'example.com', 'off', '2026-11-23T00:00:00+00:00');
"""
REGISTERED = datetime(2026, 11, 21, 1, 15, 30, tzinfo=UTC)
KEY = key_of("example.com", "s1")
KEPT = Registration(
    "example.com", "s1", 2048, None, 1, True,
    DnsRecord("s1._domainkey.example.com", "TXT", "v=DKIM1; p=x"),
    "2026-11-21T10:15:30+09:00", "201", "created",
)  # fmt: skip


@pytest.fixture(params=[VERSION_1, VERSION_1 + VERSION_2], ids=["version 1", "version 2"])
def old(path, request):
    """A ledger of an older version, at `path`."""
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(request.param)
    connection.close()
    return path


def test_an_old_ledger_keeps_its_registrations_and_gains_tables(old, write, read):
    with write() as ledger:
        assert list(ledger.all()) == [KEPT]
        assert ledger.intents() == []
        assert {key: one.published_at for key, one in ledger.histories().items()} == {KEY: None}
        ledger.commit(begun=[[DomainSpec("example.net")]])
        ledger.note_looks({KEY: "published"})
    with read() as ledger:
        assert list(ledger.all()) == [KEPT]
        assert [intent.sign_domain for intent in ledger.intents()] == ["example.net"]
        assert ledger.histories()[KEY].verdict == "published"


def test_a_reader_does_not_migrate_an_old_ledger(old, read):
    before = old.read_bytes()
    with read() as ledger:
        assert ledger.of_domain("example.com") == [KEPT]
        assert ledger.intents() == ledger.intents_of("example.com") == []
        assert set(ledger.histories()) == {KEY}
    assert old.read_bytes() == before


def test_what_version_3_knew_of_publication_and_keys_is_kept(path, write, read):
    """But not since when a record is published: it may have been at an internal server alone."""
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(VERSION_1 + VERSION_2 + VERSION_3)
    connection.close()
    before = path.read_bytes()
    with read() as ledger:
        require_migrated(ledger)
    assert path.read_bytes() == before
    with write() as ledger:
        require_migrated(ledger)
    with read() as ledger:
        require_migrated(ledger)
    connection = sqlite3.connect(path)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "publication" not in tables


def require_migrated(ledger: Ledger) -> None:
    histories = ledger.histories()
    nets = {key.selector: one for key, one in histories.items() if key[0] == "example.net"}
    coms = {key.selector: one for key, one in histories.items() if key[0] == "example.com"}
    now = nets["silent"].enabled_at
    assert timedelta() <= datetime.now(UTC) - now < timedelta(minutes=5)
    first, second = (datetime(2026, 11, day, tzinfo=UTC) for day in (22, 23))
    assert coms == {
        "s1": KeyHistory(REGISTERED, looked_at=first, verdict="published"),
        "off": KeyHistory(None, REGISTERED),
        "undated": KeyHistory(now),
        "dateless": KeyHistory(now),
    }
    assert nets == {
        "exists": KeyHistory(now, looked_at=second, verdict="published"),
        "silent": KeyHistory(now),
        "off": KeyHistory(None, now),
    }
    assert histories[key_of("example.org", "odd")] == KeyHistory(now)


def test_a_reader_continues_while_another_run_migrates(old, read, write):
    with read() as reader:
        with write() as writer:
            writer.commit(begun=[[DomainSpec("example.net", "s1")]])
            writer.note_looks({KEY: "published"})
        assert list(reader.all()) == [KEPT]
        assert reader.histories()[KEY].verdict in (None, "published")  # as before, or after


def test_a_database_without_tables_reads_as_empty_and_is_not_changed(path, read):
    path.parent.mkdir()
    sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()
    before = path.read_bytes()
    with read() as ledger:
        assert list(ledger.all()) == ledger.intents() == ledger.of_domain("example.com") == []
    assert path.read_bytes() == before


def test_a_new_ledger_is_created_whole_without_leftovers(path, write):
    write().close()
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]
    assert path.stat().st_size > 0


def test_a_ledger_of_a_newer_version_is_refused_and_not_changed(path, write, account):
    write().close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 6")
    connection.close()
    before = path.read_bytes()
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="newer dkimctl") as caught:
            open_(path, **account)
        assert "upgrade" in caught.value.hint
    assert path.read_bytes() == before


OPEN_AND_ADD = """
sys.stdin.readline()
with Ledger.open(path, **ACCOUNT) as ledger:
    ledger.commit(begun=[[DomainSpec(f"d{os.getpid()}.example", "s")]])
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("there", ["nothing", "an old one"])
def test_several_processes_can_open_a_ledger_at_the_same_time(path, start, read, old, there):
    if there == "nothing":
        shutil.rmtree(path.parent)
    processes = [start(OPEN_AND_ADD) for _ in range(4)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["done\n"] * 4
    with read() as ledger:
        assert len(ledger.intents()) == 4
        assert list(ledger.all()) == ([] if there == "nothing" else [KEPT])
