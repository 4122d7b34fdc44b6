"""Ledgers of other versions, and their migration."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Alarm, ClosedKey, DnsRecord, DomainSpec, KeyHistory, Registration, key_of
from ledgers import histories_of

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
# What version 3 added.
VERSION_3 = """
CREATE TABLE publication (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  published_at TEXT NOT NULL,
  PRIMARY KEY (account_id, sign_domain, selector)
);
PRAGMA user_version = 3;
"""
# What version 4 had instead.
VERSION_4 = """
DROP TABLE publication;
CREATE TABLE history (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  enabled_at TEXT,
  disabled_at TEXT,
  replaces TEXT,
  published_at TEXT,
  looked_at TEXT,
  verdict TEXT,
  PRIMARY KEY (account_id, sign_domain, selector)
);
PRAGMA user_version = 4;
"""
# How version 5 named a table.
VERSION_5 = "ALTER TABLE sending RENAME TO open_request; PRAGMA user_version = 5;"
CHANGES = (VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5)
# For version 3: registrations in all states, of which some are published.
ROWS_OF_3 = """
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


def make_old(path, version, rows=""):
    """A ledger as an older version has left it."""
    path.parent.mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript("".join(CHANGES[:version]) + rows)


def schema_of(path):
    """The version, and the tables with their columns."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        tables = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        return version, tables.fetchall()


@pytest.fixture(params=range(1, len(CHANGES) + 1), ids="version {}".format)
def old(path, request):
    """A ledger of an older version, at `path`."""
    make_old(path, request.param)
    return path


def test_an_old_ledger_keeps_its_registrations_and_gains_tables(old, write, read):
    with write() as ledger:
        assert list(ledger.all()) == [KEPT]
        assert ledger.intents() == []
        assert ledger.closed_keys() == ledger.alarms() == []
        assert {key: one.published_at for key, one in histories_of(ledger).items()} == {KEY: None}
        ledger.commit(begun=[[DomainSpec("example.net")]])
        ledger.note_looks({KEY: "published"})
    with read() as ledger:
        assert list(ledger.all()) == [KEPT]
        assert [intent.sign_domain for intent in ledger.intents()] == ["example.net"]
        assert histories_of(ledger)[KEY].verdict == "published"


def test_a_migrated_ledger_closes_keys_and_remembers_alarms(old, write, read):
    now = datetime(2027, 1, 20, 10, tzinfo=UTC)
    alarm = Alarm("example.net s1", "missing", now, now)
    with write(clock=now.timestamp) as ledger:
        ledger.retire({KEPT: "s2"})
        ledger.replace_alarms([], [alarm])
    with read() as ledger:
        closed = ClosedKey("example.com", "s1", 1, REGISTERED, REGISTERED, "s2", now)
        assert (list(ledger.all()), ledger.closed_keys()) == ([], [closed])
        assert ledger.alarms() == [alarm]


def test_a_migrated_ledger_has_the_tables_of_a_new_one(old, write, tmp_path):
    write().close()
    write(path=tmp_path / "new.db").close()
    assert schema_of(old) == schema_of(tmp_path / "new.db")


def test_a_reader_does_not_migrate_an_old_ledger(old, read):
    before = old.read_bytes()
    with read() as ledger:
        assert ledger.of_domain("example.com") == [KEPT]
        assert ledger.intents() == ledger.intents_of("example.com") == []
        assert ledger.closed_keys() == ledger.alarms() == []
        assert set(histories_of(ledger)) == {KEY}
    assert old.read_bytes() == before


def test_what_version_3_knew_of_publication_and_keys_is_kept(path, write, read):
    """But not since when a record is published: it may have been at an internal server alone."""
    make_old(path, 3, ROWS_OF_3)
    before = path.read_bytes()
    with read() as ledger:
        require_migrated(ledger)
    assert path.read_bytes() == before
    with write() as ledger:
        require_migrated(ledger)
    with read() as ledger:
        require_migrated(ledger)


def require_migrated(ledger: Ledger) -> None:
    histories = histories_of(ledger)
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
        assert histories_of(reader)[KEY].verdict in (None, "published")  # as before, or after


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
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    before = path.read_bytes()
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="newer dkimctl") as caught:
            open_(path, **account)
        assert "upgrade" in caught.value.hint
    assert path.read_bytes() == before


# Migrates copies of a ledger: the first process dies at the first statement, and so on, with all
# that it has changed in SQLite's log.
DIE_AT_EACH_STATEMENT = """
import itertools, shutil, signal
from dkimctl.ledger.opening import migrate

class Dying(sqlite3.Connection):
    left = 0

    def execute(self, *words):
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return super().execute(*words)

def migrate_and_die(copy, statements):
    connection = sqlite3.connect(copy, factory=Dying, isolation_level=None)
    connection.left = statements + 2
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    migrate(connection, copy)
    os._exit(0)

for statements in itertools.count():
    copy = path.with_name(f"{statements}.db")
    shutil.copy(path, copy)
    if not (child := os.fork()):
        migrate_and_die(copy, statements)
    if os.waitpid(child, 0)[1] == 0:
        copy.unlink()
        break
print(statements)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_kill_in_a_migration_leaves_the_old_ledger(old, start, read, write):
    count = int(start(DIE_AT_EACH_STATEMENT).communicate()[0])
    before = schema_of(old)
    write().close()
    after = schema_of(old)
    assert count > 3
    for killed in (old.with_name(f"{number}.db") for number in range(count)):
        assert schema_of(killed) == before
        with read(path=killed) as ledger:
            assert list(ledger.all()) == [KEPT]
        with write(path=killed) as ledger:
            assert list(ledger.all()) == [KEPT]
        assert schema_of(killed) == after


READ_AND_WRITE = """
with Ledger.open_existing(path, **ACCOUNT) as ledger:
    print(len(list(ledger.all())), ledger.closed_keys(), ledger.alarms())
try:
    Ledger.open(path, **ACCOUNT)
except LedgerError as error:
    print(error.message, error.hint, sep="\\n")
"""


@pytest.mark.parametrize("version", [1, 5])
def test_an_old_ledger_in_a_read_only_directory_is_read_and_not_migrated(elsewhere, version):
    path = elsewhere.path / "ledger.db"
    make_old(path, version)
    path.chmod(0o644)
    before = path.read_bytes()
    elsewhere.path.chmod(0o555)
    found, message, hint = elsewhere.run(READ_AND_WRITE, path).splitlines()
    assert found == "1 [] []"
    assert message.startswith(f"cannot use the ledger {path}: ")
    assert f"read and write in the directory {elsewhere.path}" in hint
    assert path.read_bytes() == before


OPEN_AND_ADD = """
sys.stdin.readline()
with Ledger.open(path, **ACCOUNT) as ledger:
    ledger.commit(begun=[[DomainSpec(f"d{os.getpid()}.example", "s")]])
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1, 5], ids="version {}".format)
def test_several_processes_can_open_a_ledger_at_the_same_time(path, start, read, version):
    if version:
        make_old(path, version)
    processes = [start(OPEN_AND_ADD) for _ in range(4)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["done\n"] * 4
    with read() as ledger:
        assert len(ledger.intents()) == 4
        assert list(ledger.all()) == ([KEPT] if version else [])
