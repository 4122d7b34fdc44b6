"""Ledgers whose rows another program has changed: sound registrations, or a LedgerError."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import LedgerError
from dkimctl.formats.renderer import PER_ZONE, Format
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Alarm, DnsRecord, DomainSpec, Outcome, Registration, key_of
from dkimctl.registration import outcomes
from dkimctl.settings.profile import SANDBOX_CLIENT_ID
from dkimctl.text import printable
from ledgers import histories_of
from rendering import render_text
from terminals import is_harmless

ACCOUNT = {"base_url": "https://sandbox.invalid", "client_id": SANDBOX_CLIENT_ID}
COLUMNS = {
    "registration": (
        "id", "account_id", "sign_domain", "selector", "key_len", "start_date", "default", "enable",
        "fqdn", "type", "value", "regist_date", "code", "message",
    ),
    "open_request": ("id", "account_id", "sent_at", "entries"),
    "history": (
        "account_id", "sign_domain", "selector", "enabled_at", "disabled_at", "replaces",
        "published_at", "looked_at", "verdict", "closed_at", "signed_at",
    ),
    "account": ("id", "base_url", "client_id"),
    "closed_key": (
        "account_id", "sign_domain", "selector", "default", "created_at", "started_at",
        "replaced_by", "closed_at", "key_len", "start_date", "fqdn", "type", "value",
        "regist_date",
    ),
    "alarm": ("account_id", "subject", "problem", "first_seen", "looked_at", "told_at"),
    "event": (
        "id", "account_id", "sign_domain", "selector", "at", "username", "machine", "command",
        "what", "detail",
    ),
}  # fmt: skip
CELLS = [(table, column) for table, columns in COLUMNS.items() for column in columns]
CONTENTS = [cell for cell in CELLS if cell[1] not in {"id", "account_id"}]
TEXTS = st.text(max_size=30) | st.sampled_from(
    ("", "\0", "\x1b[2J", "a" * 70_000, "1024", "a.example", "A.Example", "x._domainkey.a.example",
     "TXT", "409", "201", "v=DKIM1; p=", "2027-07-01T00:00+09:00", "0001-01-01T00:00:00+23:59",
     "9999-12-31T23:59:59-23:59", "2026-11-21T14:02:10", "now", "é", "\u202e", "=1+1", ";\n")
)  # fmt: skip
INTEGERS = st.integers(-(2**63), 2**63 - 1)
# Values that any SQLite column accepts, including text that is not UTF-8.
VALUES = TEXTS | st.none() | INTEGERS | st.floats(allow_nan=False) | st.binary(max_size=30)
JSON = st.recursive(
    st.sampled_from(("a.example", "s1")) | st.none() | st.booleans() | st.integers() | st.floats()
    | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)  # fmt: skip
ENTRIES = (
    st.lists(st.tuples(JSON, JSON), min_size=1, max_size=2).map(json.dumps)
    | JSON.map(json.dumps)
    | st.sampled_from(("[" * 100_000, '[["a", ' + "9" * 5000 + "]]", "[[]]"))
)
PLACES = st.sampled_from(("1", "1", "rowid = 1"))
CHANGES = st.lists(
    st.tuples(st.sampled_from(CONTENTS), VALUES, st.booleans(), PLACES)
    | st.tuples(st.sampled_from(CONTENTS), VALUES, st.booleans(), PLACES)
    | st.tuples(st.just(("open_request", "entries")), ENTRIES, st.booleans(), PLACES)
    | st.tuples(st.sampled_from(CELLS), VALUES, st.booleans(), PLACES),
    min_size=1,
    max_size=3,
)
SQL = ("DROP TABLE {table}", "ALTER TABLE {table} RENAME TO other", "DELETE FROM {table}",
       "PRAGMA user_version = {number}", "DROP TABLE {table}; CREATE VIEW {table} AS SELECT 1",
       "DROP TABLE {table}; CREATE TABLE {table} (id, account_id, looked_at, entries)",
       "CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END")  # fmt: skip
NOW = datetime(2026, 11, 30, 1, 33, 20, tzinfo=UTC)
ANSWER = Path(__file__).parents[1] / "fixtures" / "api" / "register-created.json"
VALUE = json.loads(ANSWER.read_bytes())["items"][0]["setting_values"]["value"]


def registration(sign_domain: str, code: str) -> Registration:
    """One whose record can be published, and whose key can be retired."""
    record = DnsRecord(f"s1._domainkey.{sign_domain}", "TXT", VALUE)
    dates = {"start_date": "2026-07-01T00:00+09:00", "regist_date": "2026-06-21T10:15:30+09:00"}
    return Registration(sign_domain, "s1", 1024, record=record, code=code, message="", **dates)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with rows in every table, whose columns accept any value."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    with Ledger.open(path, **ACCOUNT, clock=NOW.timestamp) as ledger:
        ledger.record([registration("a.example", "201"), registration("b.example", "409")])
        over = [registration("c.example", "201"), registration("d.example", "201")]
        ledger.record(over)
        ledger.close_keys(dict.fromkeys(over, "s2"))
        ledger.replace_alarms([], [Alarm(f"{one}.example s1", "missing", NOW, NOW) for one in "ab"])
        ledger.commit(
            begun=[
                [DomainSpec("a.example", "s2"), DomainSpec("c.example")],
                [DomainSpec("b.example")],
            ]
        )
        ledger.note_looks({key_of(f"{one}.example", "s1"): "published" for one in "ab"})
        ledger.note_replacements({key_of("a.example", "s1"): "s0"})
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


@pytest.fixture(scope="session")
def damage(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make a copy of the sound ledger, changed by a statement or by `change`."""
    directory = tmp_path_factory.mktemp("damaged")

    def make(change: Callable[[Path], None]) -> Path:
        shutil.rmtree(directory)
        directory.mkdir()
        path = directory / "ledger.db"
        shutil.copyfile(sound, path)
        change(path)
        return path

    return make


def put(path: Path, changes) -> None:
    """Put values into cells; a value that SQLite rejects changes nothing."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for (table, column), value, as_text, where in changes:
            written = "CAST(? AS TEXT)" if as_text else "?"
            with contextlib.suppress(sqlite3.Error, UnicodeError):
                connection.execute(
                    f'UPDATE {table} SET "{column}" = {written} WHERE {where}', [value]
                )


def read(use: Callable[[], object]) -> object:
    """The value, or the LedgerError."""
    try:
        return use()
    except LedgerError as error:
        return error


def require_explained(error: object) -> None:
    """Assert that an error says what happened, and what to do."""
    if isinstance(error, LedgerError):
        assert "ledger" in error.message
        assert error.hint
        assert is_harmless(printable(f"{error.message} {error.hint}"))


def require_sound(path: Path) -> None:
    """Assert that every query gives sound values or a LedgerError, and changes nothing."""
    before = path.read_bytes()
    for ask in (
        lambda ledger: list(ledger.all()),
        lambda ledger: list(ledger.ours()),
        lambda ledger: ledger.of_domain("a.example"),
        lambda ledger: ledger.intents(),
        lambda ledger: ledger.intents_of("a.example"),
        histories_of,
        lambda ledger: ledger.begun_successors(),
        lambda ledger: ledger.closed_keys(),
        lambda ledger: ledger.alarms(),
        lambda ledger: list(ledger.events()),
    ):
        value = read(lambda ask=ask: asked_of(path, ask))
        require_explained(value)
        if isinstance(value, dict):
            for pair, one in value.items():
                assert all(isinstance(word, str) for word in pair)
                require_sound_one(one)
        elif isinstance(value, list):
            for one in value:
                require_sound_one(one)
    assert path.read_bytes() == before


def asked_of(path: Path, ask: Callable[[Ledger], object]) -> object:
    with Ledger.open_existing(path, **ACCOUNT) as ledger:
        return ask(ledger)


def require_sound_one(item: NamedTuple | str) -> None:
    """Assert that all values have the types that the class states; times are in UTC."""
    if isinstance(item, str):
        return
    types = get_type_hints(type(item))
    for name, value in item._asdict().items():
        assert isinstance(value, types[name]), (name, value)
        assert not isinstance(value, datetime) or value.tzinfo is UTC
    if isinstance(item, Registration):
        require_renderable(item)


def require_renderable(item: Registration) -> None:
    assert item.record is None or all(isinstance(part, str) for part in item.record)
    result = outcomes.verified(item, Outcome.EXISTS)
    for fmt in set(Format) - set(PER_ZONE):
        text = render_text(fmt, [result])
        assert all(map(is_harmless, text.replace("\t", " ").split("\n")))


@given(changes=CHANGES)
def test_damaged_rows_are_read_soundly_or_refused(damage, changes):
    require_sound(damage(lambda path: put(path, changes)))


@given(statement=st.sampled_from(SQL), table=st.sampled_from([*COLUMNS]), number=INTEGERS)
def test_tables_of_another_shape_are_refused(damage, statement, table, number):
    def change(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(statement.format(table=table, number=number))

    require_sound(damage(change))


@given(changes=CHANGES)
def test_a_writer_continues_with_damaged_rows_or_refuses_them(damage, changes):
    path = damage(lambda path: put(path, changes))
    answer = Registration("a.example", "S1", 1024, code="201")
    with contextlib.ExitStack() as stack:
        ledger = read(lambda: stack.enter_context(Ledger.open(path, **ACCOUNT)))
        require_explained(ledger)
        if isinstance(ledger, LedgerError):
            return
        for use in (
            lambda: ledger.note_looks({key_of("a.example", "s1"): "published"}),
            lambda: ledger.note_replacements({key_of("b.example", "s1"): "s0"}),
            lambda: ledger.commit(answered=[answer], begun=[[DomainSpec("d.example")]]),
            lambda: ledger.forget([Registration("b.example", "s1")]),
            lambda: ledger.close_keys(dict.fromkeys(ledger.of_domain("a.example"), "s2")),
            lambda: ledger.commit(answered=[registration("c.example", "201")]),
            lambda: ledger.replace_alarms(ledger.alarms(), [Alarm("a", "b", NOW, NOW, NOW)]),
            ledger.check,
        ):
            require_explained(read(use))
    if path.exists():
        require_sound(path)


COMMANDS = [
    words.split()
    for words in (
        "show-dns", "show-dns --format json", "show-dns --format table",
        "show-dns *.example --format csv", "show-dns --format octodns --zone example",
        "rotate --older-than 1d", "rotate --retired --no-check --assume-successors",
        "list --wide --sort-by due", "list --all --format json", "overview", "history --wide",
        "ledger forget a.example --force",
    )
]  # fmt: skip


@given(changes=CHANGES, words=st.sampled_from(COMMANDS))
def test_commands_continue_with_damaged_rows_or_refuse_them(command_line, damage, changes, words):
    shutil.copyfile(damage(lambda path: put(path, changes)), command_line.state / "ledger.db")
    done = command_line(*words, "--sandbox")
    for path in command_line.state.glob("ledger.*"):
        path.unlink()
    assert done.status in {0, 1, 2}
    assert all(map(is_harmless, done.out.replace("\t", " ").split("\n")))
    assert all(map(is_harmless, done.err.splitlines()))
    assert done.status == 0 or done.err
