"""Ledgers of other versions, and their migration: nothing in them is lost."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger import opening
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Alarm, ClosedKey, DnsRecord, DomainSpec, KeyHistory, Registration, key_of
from ledgers import histories_of
from old_ledgers import make_version_4

_KEY = """account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE, selector TEXT NOT NULL COLLATE NOCASE"""
_UNIQUE = "PRIMARY KEY (account_id, sign_domain, selector)"
# As version 1 wrote it, and what each later one changed.
CHANGES = (
    f"""
CREATE TABLE account (
  id INTEGER PRIMARY KEY, base_url TEXT NOT NULL, client_id TEXT NOT NULL,
  UNIQUE (base_url, client_id)
);
CREATE TABLE registration (
  id INTEGER PRIMARY KEY, {_KEY},
  key_len INTEGER, start_date TEXT, "default" INTEGER, enable INTEGER, fqdn TEXT, type TEXT,
  value TEXT, regist_date TEXT, code TEXT, message TEXT,
  UNIQUE (account_id, sign_domain, selector)
);
PRAGMA user_version = 1;
INSERT INTO account VALUES (1, 'https://other.example', 'me'), (2, 'https://api.example', 'me');
INSERT INTO registration VALUES
  (1, 2, 'example.com', 's1', 2048, NULL, 1, 1, 's1._domainkey.example.com', 'TXT', 'v=DKIM1; p=x',
   '2026-11-21T10:15:30+09:00', '201', 'created');
""",
    """
CREATE TABLE sending (
  id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL REFERENCES account (id),
  sent_at TEXT NOT NULL, entries TEXT NOT NULL
);
PRAGMA user_version = 2;
""",
    f"""
CREATE TABLE publication ({_KEY}, published_at TEXT NOT NULL, {_UNIQUE});
PRAGMA user_version = 3;
""",
    f"""
DROP TABLE publication;
CREATE TABLE history ({_KEY},
  enabled_at TEXT, disabled_at TEXT, replaces TEXT, published_at TEXT, looked_at TEXT, verdict TEXT,
  {_UNIQUE}
);
PRAGMA user_version = 4;
""",
    "ALTER TABLE sending RENAME TO open_request; PRAGMA user_version = 5;",
    f"""
CREATE TABLE closed_key ({_KEY},
  "default" INTEGER, created_at TEXT, started_at TEXT, replaced_by TEXT, closed_at TEXT NOT NULL,
  {_UNIQUE}
);
CREATE TABLE alarm (account_id INTEGER NOT NULL REFERENCES account (id),
  subject TEXT NOT NULL, problem TEXT NOT NULL,
  first_seen TEXT NOT NULL, looked_at TEXT NOT NULL, told_at TEXT,
  PRIMARY KEY (account_id, subject, problem)
);
PRAGMA user_version = 6;
""",
    """
ALTER TABLE closed_key ADD key_len INTEGER; ALTER TABLE closed_key ADD start_date TEXT;
ALTER TABLE closed_key ADD fqdn TEXT; ALTER TABLE closed_key ADD type TEXT;
ALTER TABLE closed_key ADD value TEXT; ALTER TABLE closed_key ADD regist_date TEXT;
ALTER TABLE history ADD closed_at TEXT; ALTER TABLE history ADD signed_at TEXT;
PRAGMA user_version = 7;
""",
)
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
        return version, [(*names, sql and "".join(sql.split())) for *names, sql in tables]


@pytest.fixture(params=range(1, len(CHANGES) + 1), ids="version {}".format)
def old(path, request):
    """A ledger of an older version, at `path`."""
    make_old(path, request.param)
    return path


def test_an_old_ledger_is_read_as_it_is_and_gains_tables(old, write, read, tmp_path):
    before = old.read_bytes()
    with read() as ledger:
        assert ledger.of_domain("example.com") == [KEPT]
        assert ledger.intents() == ledger.closed_keys() == ledger.alarms() == []
        assert {key: one.published_at for key, one in histories_of(ledger).items()} == {KEY: None}
    assert old.read_bytes() == before
    now = datetime(2027, 1, 20, 10, tzinfo=UTC)
    alarm = Alarm("example.net s1", "missing", now, now)
    with write(clock=now.timestamp) as ledger:
        assert list(ledger.all()) == [KEPT]
        ledger.note_looks({KEY: "published"})
        assert histories_of(ledger)[KEY].verdict == "published"
        ledger.commit(begun=[[DomainSpec("example.net")]])
        ledger.close_keys({KEPT: "s2"})
        ledger.replace_alarms([], [alarm])
    with read() as ledger:
        closed = ClosedKey("example.com", "s1", 1, REGISTERED, REGISTERED, "s2", now)
        assert (list(ledger.all()), ledger.closed_keys()) == ([], [closed])
        assert ([intent.sign_domain for intent in ledger.intents()], ledger.alarms()) == (
            ["example.net"], [alarm],
        )  # fmt: skip
    write(path=tmp_path / "new.db").close()
    assert schema_of(old) == schema_of(tmp_path / "new.db")


def test_what_version_3_knew_of_publication_and_keys_is_kept(path, write, read):
    """But not since when a record is published: it may have been at an internal server alone."""
    make_old(path, 3, ROWS_OF_3)
    before = path.read_bytes()
    with read() as ledger:
        require_migrated(ledger)
    assert path.read_bytes() == before
    for open_ in write, read:
        with open_() as ledger:
            require_migrated(ledger)


def require_migrated(ledger: Ledger) -> None:
    histories = {" ".join(key): history for key, history in histories_of(ledger).items()}
    now = histories["example.net silent"].enabled_at
    assert timedelta() <= datetime.now(UTC) - now < timedelta(minutes=5)
    first, second = (datetime(2026, 11, day, tzinfo=UTC) for day in (22, 23))
    assert histories == {
        "example.com s1": KeyHistory(REGISTERED, looked_at=first, verdict="published"),
        "example.com off": KeyHistory(None, REGISTERED),
        "example.net exists": KeyHistory(now, looked_at=second, verdict="published"),
        "example.net off": KeyHistory(None, now),
    } | dict.fromkeys(
        ("example.com undated", "example.com dateless", "example.net silent", "example.org odd"),
        KeyHistory(now),
    )


def test_a_ledger_of_a_newer_version_is_refused_and_not_changed(path, write, account):
    write().close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="newer dkimctl") as caught:
            open_(path, **account)
        assert "upgrade" in caught.value.hint
    assert path.read_bytes() == before


def test_a_migration_that_fails_half_way_leaves_the_old_ledger(old, write, read, monkeypatch):
    before = schema_of(old)
    monkeypatch.setattr(opening, "STEPS", (*opening.STEPS[:-1], f"{opening.STEPS[-1]}; rubbish"))
    with pytest.raises(LedgerError, match="syntax error"):
        write()
    monkeypatch.undo()
    assert schema_of(old) == before
    with write() as ledger:
        assert list(ledger.all()) == [KEPT]


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


URL = "https://api.example"  # that of `read` and `write`
SPELLINGS = (f"{URL}:443", f"{URL}:0443", f"{URL}:", URL, f"{URL}/x/..")


def registration(value="v=DKIM1; p=x", sign_domain="example.com", selector="s1", **fields):
    record = value and DnsRecord(f"{selector}._domainkey.{sign_domain}", "TXT", value)
    fields = {"regist_date": "2026-11-21T10:15:30+09:00", "code": "201"} | fields
    return Registration(sign_domain, selector, 2048, record=record, **fields)


@pytest.fixture
def under(path):
    """Open the ledger for the account of a URL, which need not be canonical."""
    return lambda url, seconds=0.0, client_id="me": Ledger.open(
        path, base_url=url, client_id=client_id, clock=lambda: seconds
    )


@pytest.fixture
def opened(path, read, write):
    """What both ways to open a ledger of version 4 give: read-only, without a change, and not."""

    def opened(ask):
        make_version_4(path)
        before = path.read_bytes()
        with read() as ledger:
            answer = ask(ledger)
        assert path.read_bytes() == before
        for open_ in write, read:
            with open_() as ledger:
                assert ask(ledger) == answer
        return answer

    return opened


def accounts_in(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT base_url, client_id FROM account").fetchall()


@pytest.mark.parametrize("urls", [SPELLINGS, SPELLINGS[:3]], ids=len)
def test_accounts_of_equivalent_urls_become_one(path, under, opened, urls):
    for number, url in enumerate(urls):
        with under(url, number) as ledger:
            ledger.record([registration(selector=f"s{number}")])
            ledger.note_looks({key_of("example.com", f"s{number}"): "published"})
            ledger.commit(begun=[[DomainSpec(f"d{number}.example")]])
    registrations, histories, intents = opened(
        lambda ledger: (list(ledger.all()), histories_of(ledger), ledger.intents())
    )
    assert [one.selector for one in registrations] == [f"s{n}" for n in range(len(urls))]
    assert [intent.sign_domain for intent in intents] == [f"d{n}.example" for n in range(len(urls))]
    assert [one.looked_at.second for one in histories.values()] == [*range(len(urls))]
    assert accounts_in(path) == [(URL, "me")]


def test_other_accounts_stay_as_they_are(path, under, opened):
    mine = [(URL, "me"), (f"{URL}:8443", "me"), ("https://api.example/%zz", "me")]
    for number, (url, client_id) in enumerate([*mine, (f"{URL}:443", "you")]):
        with under(url, client_id=client_id) as ledger:
            ledger.record([registration(selector=f"s{number}")])
    assert [one.selector for one in opened(lambda ledger: list(ledger.all()))] == ["s0"]
    assert accounts_in(path) == [*mine, (URL, "you")]
    with under(URL, client_id="you") as ledger:
        assert [one.selector for one in ledger.all()] == ["s3"]


OLDER, NEWER = (registration(value, regist_date=date) for value, date in (
    ("v=DKIM1; p=y", "2026-11-21T10:15:30+09:00"), ("v=DKIM1; p=x", "2026-11-21T02:00:00+00:00"),
))  # fmt: skip
TAKEN = registration(None, code="409", regist_date="2026-12-01T00:00:00+00:00")
AGAIN = OLDER._replace(code="409")


@pytest.mark.parametrize("canonical_first", [True, False])
@pytest.mark.parametrize(
    ("canonical", "other", "kept"),
    [(OLDER, NEWER, NEWER), (NEWER, OLDER, NEWER), (TAKEN, OLDER, OLDER), (OLDER, TAKEN, OLDER),
     (OLDER, AGAIN, OLDER), (AGAIN, OLDER, AGAIN),
     (OLDER._replace(regist_date=None), OLDER, OLDER),
     (OLDER._replace(regist_date="soon"), OLDER, OLDER)],
)  # fmt: skip
def test_of_two_answers_for_a_key_the_better_is_kept(
    under, opened, canonical, other, kept, canonical_first
):
    answers = [(URL, canonical), (f"{URL}:443", other._replace(sign_domain="Example.COM"))]
    for url, answer in answers if canonical_first else reversed(answers):
        with under(url) as ledger:
            ledger.record([answer])
    (registration,) = opened(lambda ledger: list(ledger.all()))
    assert registration._replace(sign_domain="example.com") == kept


def test_an_intent_that_is_repeated_or_answered_in_another_account_is_closed(under, opened):
    sent = (
        [("example.com", "s1"), ("example.com", None), ("a.example", None)],
        [("a.example", None), ("b.example", "s")],
    )
    for number, (url, specs) in enumerate(zip(SPELLINGS, sent, strict=False)):
        with under(url, number) as ledger:
            ledger.commit(begun=[list(itertools.starmap(DomainSpec, specs))])
    with under(URL) as ledger:
        ledger.record([registration()])
    intents = opened(Ledger.intents)
    assert [(intent.sign_domain, intent.sent_at[-8:-6]) for intent in intents] == [
        ("example.com", "00"),  # the service may have chosen another selector
        ("a.example", "01"),
        ("b.example", "01"),
    ]


def second(number):
    return datetime.fromtimestamp(number, UTC)


@pytest.mark.parametrize("urls", [(f"{URL}:443", URL), (URL, f"{URL}:443")], ids=str)
def test_the_times_of_a_key_are_those_of_the_answer_that_is_kept(under, opened, urls):
    """And what was seen of the other key, which is gone, does not count for this one."""
    with under(urls[0], 1_800_000_000) as ledger:
        ledger.record([OLDER._replace(enable=False)])
        ledger.note_looks({KEY: "published"})
    with under(urls[1], 1_900_000_000) as ledger:
        ledger.record([NEWER._replace(code="409")])  # enabled since then, as far as is known
    assert opened(histories_of)[KEY] == KeyHistory(second(1_900_000_000))
