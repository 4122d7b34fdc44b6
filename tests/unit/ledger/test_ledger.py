"""What the ledger remembers of keys: answers, histories, and those whose life is over."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import ClosedKey, DnsRecord, DomainSpec, KeyHistory, key_of
from fakes import Clock
from ledgers import histories_of


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


def test_a_directory_that_cannot_be_created_is_reported(tmp_path, account):
    (tmp_path / "state").write_text("a file")
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="cannot use the ledger") as caught:
            open_(tmp_path / "state" / "ledger.db", **account)
        assert "DKIMCTL_STATE_DIR" in caught.value.hint


ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
NOW = datetime(2027, 1, 20, 10, tzinfo=UTC)
OLD, NEW = key_of("example.com", "old"), key_of("example.com", "new")


@pytest.fixture
def rotated(tmp_path, make_registration):
    dates = {"start_date": "2026-01-02T00:00+00:00", "regist_date": "2026-01-01T00:00:00+00:00"}
    with Ledger.open(tmp_path / "ledger.db", **ACCOUNT, clock=NOW.timestamp) as ledger:
        ledger.record([make_registration(selector="old", default=1, **dates)])
        ledger.record([make_registration(selector="new", **dates)])
        ledger.note_replacements({NEW: "old"})
        yield ledger


def registered(rotated):
    return {one.selector: one for one in rotated.all()}


def test_keys_that_were_begun_are_those_without_a_registration(rotated):
    begun = key_of("Example.com", "next")
    rotated.note_replacements({begun: "new"})
    assert rotated.begun_successors() == {begun: "new"}
    rotated.record([registered(rotated)["new"]._replace(selector="NEXT")])
    assert rotated.begun_successors() == {}


@pytest.mark.parametrize(
    "value", ["x'ff'", "CAST(x'ff' AS TEXT)", "1.5", "char(0)", "zeroblob(100000)"]
)
def test_a_closed_key_with_damaged_columns_is_read_without_them(rotated, tmp_path, value):
    rotated.close_keys(dict.fromkeys(registered(rotated).values(), "next"))
    sound = rotated.closed_keys()[0]
    columns = ("created_at", "started_at", "closed_at", '"default"')
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        changes = ", ".join(f"{column} = {value}" for column in columns)
        connection.execute(f"UPDATE closed_key SET {changes} WHERE selector = 'old'")
    damaged = ClosedKey(*OLD, 0, None, None, "next", None)
    assert rotated.closed_keys() == [sound, damaged]


NOON = 1795262400.0  # 2026-11-21T12:00:00Z
AT_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = 86400
LATER = AT_NOON + timedelta(days=1)
FIRST, SECOND = key_of("example.com", "s1"), key_of("example.net", "s1")


@pytest.fixture
def clock():
    """`now` is the ledger's time, in seconds since the epoch."""
    return Clock(NOON)


@pytest.fixture
def ledger(write, clock):
    with write(clock=clock) as ledger:
        yield ledger


@pytest.fixture
def two(ledger, make_registration):
    """The ledger with the keys FIRST and SECOND, registered at noon."""
    ledger.record([made(make_registration), made(make_registration, "example.net")])
    return ledger


def made(make_registration, sign_domain="example.com", selector="s1", *, code="201", **fields):
    dates = {"regist_date": "2026-11-21T21:00:00+09:00"}
    return make_registration(sign_domain, selector, code=code, **dates | fields)


def damage(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def rows(path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM history").fetchone()[0]


class TestEnabled:
    @pytest.fixture
    def after(self, ledger, clock, make_registration):
        """The times of a key after answers, each a day later than the one before."""

        def after(*answers):
            for fields in answers:
                ledger.record([made(make_registration, **fields)])
                clock.now += DAY
            history = histories_of(ledger)[FIRST]
            return tuple(
                None if time is None else (time - AT_NOON).days
                for time in (history.enabled_at, history.disabled_at)
            )

        return after

    def test_a_new_key_is_enabled_since_its_registration_and_needs_no_row(self, two, path, clock):
        clock.now += DAY
        assert histories_of(two) == {key: KeyHistory(AT_NOON) for key in (FIRST, SECOND)}
        assert rows(path) == 0

    @pytest.mark.parametrize(
        ("answers", "enabled", "disabled"),
        [
            ([{}], 0, None),
            ([{"enable": True}], 0, None),
            ([{"enable": False}], None, 0),
            ([{"regist_date": "long ago"}], 0, None),
            ([{"regist_date": None, "enable": False}], None, 0),
            ([{"code": "409"}], 0, None),
            ([{"code": "409", "regist_date": "2026-01-01T00:00:00+00:00"}], 0, None),
            ([{}, {"code": "409"}], 0, None),
            ([{}, {"code": "409", "enable": False}], 0, 1),
            ([{}, {"code": "409", "enable": False}, {"code": "409", "enable": False}], 0, 1),
            ([{}, {"code": "409", "enable": False}, {"code": "409"}], 0, 1),
            ([{}, {"code": "409", "enable": False}, {"code": "409", "enable": True}], 2, None),
            ([{"enable": False}, {"code": "409"}], None, 0),
            ([{"enable": False}, {"code": "409", "enable": True}], 1, None),
            ([{"enable": False}, {"code": "409", "enable": True}, {"code": "409"}], 1, None),
            ([{"code": "409", "enable": False}, {"code": "409", "enable": True}], 1, None),
            ([{"code": "409"}, {"enable": True}], 0, None),
        ],
    )
    def test_since_when_it_is_known_to_be_enabled(self, after, answers, enabled, disabled):
        assert after(*answers) == (enabled, disabled)

    def test_a_time_to_come_that_a_wrong_clock_has_told_does_not_last(
        self, ledger, clock, make_registration
    ):
        clock.now += 400 * DAY
        ledger.record([made(make_registration, code="409")])
        clock.now = NOON
        ledger.record([made(make_registration, code="409")])
        assert histories_of(ledger)[FIRST] == KeyHistory(AT_NOON)

    def test_a_key_that_another_account_had_is_enabled_since_it_is_known_to_be_ours(
        self, ledger, path, clock, make_registration
    ):
        taken = made(make_registration, code="409", record=None)
        ledger.record([taken])
        assert rows(path) == 0
        ledger.record([taken])
        clock.now += DAY
        ledger.record([made(make_registration, code="409")])
        assert histories_of(ledger)[FIRST] == KeyHistory(LATER)

    def test_it_is_never_enabled_in_the_time_to_come(self, ledger, clock, make_registration):
        """The service's clock is ahead."""
        ledger.record([made(make_registration, enable=False)])
        ahead = "2026-11-21T12:05:00+00:00"
        ledger.record([made(make_registration, enable=True, regist_date=ahead)])
        assert histories_of(ledger)[FIRST] == KeyHistory(AT_NOON)

    def test_a_doubtful_answer_changes_nothing(self, two, clock, make_registration):
        clock.now += DAY
        for code in ("409", None):
            two.record([made(make_registration, code=code, record=None)])
            assert histories_of(two)[FIRST] == KeyHistory(AT_NOON)


class TestReplacements:
    def test_a_domain_is_rotated_while_it_has_both_keys(self, two, write, make_registration):
        two.note_replacements({key_of("EXAMPLE.com", "s2"): "S1", SECOND: "s0"})
        assert two.rotated_domains() == {"example.com"}
        with write(client_id="you") as other:
            assert other.rotated_domains() == set()
        two.forget([made(make_registration)])
        assert two.rotated_domains() == set()
        with write(client_id="you") as other:
            other.record([made(make_registration)])
        assert two.rotated_domains() == set(), "the key of another account is not replaced"


class TestLooks:
    def test_the_first_of_an_unbroken_series_is_kept(self, two, read, clock):
        two.note_looks({FIRST: "published"})
        clock.now += DAY
        two.note_looks({key_of("EXAMPLE.com", "S1"): "published", SECOND: "published"})
        with read() as reader:
            assert histories_of(reader) == {
                FIRST: KeyHistory(AT_NOON, None, None, AT_NOON, LATER, "published"),
                SECOND: KeyHistory(AT_NOON, None, None, LATER, LATER, "published"),
            }

    @pytest.mark.parametrize("verdict", ["missing", "inconsistent", "any other"])
    def test_a_record_that_vanished_is_published_anew(self, two, clock, verdict):
        two.note_looks({FIRST: "published", SECOND: "published"})
        clock.now += DAY
        two.note_looks({FIRST: verdict})
        assert histories_of(two)[FIRST] == KeyHistory(AT_NOON, None, None, None, LATER, verdict)
        assert histories_of(two)[SECOND].published_at == AT_NOON
        clock.now += DAY
        two.note_looks({FIRST: "published"})
        assert histories_of(two)[FIRST].published_at == AT_NOON.replace(day=23)

    @pytest.mark.parametrize("days", [-400, 400])
    def test_what_a_wrong_clock_has_told_does_not_last(self, two, clock, days):
        """It would make a key retired too early, or not for years."""
        clock.now += days * DAY
        two.note_looks({FIRST: "published"})
        clock.now = NOON + DAY
        two.note_looks({FIRST: "published"})
        clock.now += DAY
        two.note_looks({FIRST: "published"})
        assert histories_of(two)[FIRST].published_at == LATER

    def test_a_look_before_the_registration_tells_nothing(self, two, clock):
        for seconds, published in [(-2 * DAY, None), (-60, AT_NOON - timedelta(minutes=1))]:
            clock.now = NOON + seconds
            two.note_looks({FIRST: "missing"})
            two.note_looks({FIRST: "published"})
            assert histories_of(two)[FIRST].published_at == published

    def test_clocks_that_differ_by_minutes_do_not_break_a_series(self, two, clock):
        """By its own clock, the service registered the key after the first look."""
        clock.now = NOON - 300
        two.note_looks({FIRST: "published"})
        clock.now = NOON + DAY
        two.note_looks({FIRST: "published"})
        assert histories_of(two)[FIRST].published_at == AT_NOON - timedelta(minutes=5)


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "now", "2026-11-21T12:00:00", "2026-99-99T12:00:00+00:00", 17, 1.5,
     b"\xff\x00", "0001-01-01T00:00:00+14:00", "9" * 5000],
)  # fmt: skip
def test_an_invalid_time_is_ignored_and_replaced_by_the_next_one(
    two, path, value, make_registration
):
    two.record([made(make_registration, code="409")])
    two.note_looks({FIRST: "published", SECOND: "published"})
    damage(
        path,
        "UPDATE history SET published_at = ?1, enabled_at = ?1 WHERE sign_domain = ?2",
        value,
        FIRST.sign_domain,
    )
    assert histories_of(two)[FIRST] == KeyHistory(looked_at=AT_NOON, verdict="published")
    two.note_looks({FIRST: "published"})
    two.record([made(make_registration, code="409")])
    assert set(histories_of(two).values()) == {
        KeyHistory(AT_NOON, None, None, AT_NOON, AT_NOON, "published")
    }


def test_looks_are_noted_all_or_none(two):
    two.note_looks({FIRST: "published"})
    with pytest.raises(LedgerError):
        two.note_looks({FIRST: "missing", key_of("\ud800.example", "s1"): "published"})
    assert histories_of(two)[FIRST].verdict == "published"


NOTE = """
with Ledger.open(path, **ACCOUNT) as ledger:
    ledger.note_looks({key_of("example.com", "s1"): "published"})
print("done")
"""


def test_looks_can_be_noted_while_another_run_registers(write, start, make_registration):
    with write() as registering:
        registering.commit(
            answered=[make_registration()], begun=[[DomainSpec("example.net", "s2")]]
        )
        process = start(NOTE)
        assert process.communicate()[0] == "done\n"
        registering.commit(answered=[make_registration("example.net", "s2")])
        assert registering.intents() == []
        verdicts = [history.verdict for history in histories_of(registering).values()]
        assert verdicts == ["published", None]
