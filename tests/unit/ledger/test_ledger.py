"""What the ledger remembers of keys: since when they are enabled, and published."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.postgresql import Database
from dkimctl.models import DmarcReport, DomainSpec, KeyHistory, ReportedMail, key_of
from fakes import Clock
from ledgers import histories_of
from postgresql import ledger_url

NOON = 1795262400.0  # 2026-11-21T12:00:00Z
AT_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = 86400
LATER = AT_NOON + timedelta(days=1)
FIRST, SECOND = key_of("example.com", "s1"), key_of("example.net", "s1")


@pytest.fixture(params=["a file", pytest.param("PostgreSQL", marks=pytest.mark.slow)])
def place(request, path):
    """Each test here is about both."""
    if request.param == "a file":
        yield path
        return
    database = Database(ledger_url(request.getfixturevalue("postgresql")))
    yield database
    database.disconnect()


@pytest.fixture
def clock():
    """`now` is the ledger's time, in seconds since the epoch."""
    return Clock(NOON)


@pytest.fixture
def ledger(write, clock):
    with write(clock=clock) as ledger:
        yield ledger


@pytest.fixture
def made(make_registration):
    """Make a key that was registered at noon."""

    def made(sign_domain="example.com", **fields):
        return make_registration(
            sign_domain, "s1", **{"regist_date": "2026-11-21T21:00:00+09:00"} | fields
        )

    return made


@pytest.fixture
def two(ledger, made):
    """The ledger with the keys FIRST and SECOND."""
    ledger.record([made(), made("example.net")])
    return ledger


def test_accounts_do_not_see_each_other(write, two, made):
    two.commit(begun=[[DomainSpec("example.net", "s2")]])
    two.note_replacements({key_of("EXAMPLE.com", "s2"): "S1", SECOND: "s0"})
    assert two.rotated_domains() == {"example.com"}
    for other in {"client_id": "you"}, {"base_url": "https://other.example"}:
        with write(**other) as ledger:
            assert list(ledger.all()) == ledger.intents() == []
            assert ledger.rotated_domains() == set()
            ledger.commit(answered=[made()], settled=[key_of("example.net", "s2")])
    assert len(two.intents()) == 1
    two.forget([made()])
    assert list(two.all()) == [made("example.net")]
    assert two.rotated_domains() == set(), "the key of another account is not replaced"


def test_a_directory_that_cannot_be_created_is_reported(tmp_path, account):
    (tmp_path / "state").write_text("a file")
    for open_ in Ledger.open, Ledger.open_existing:
        with pytest.raises(LedgerError, match="cannot use the ledger") as caught:
            open_(tmp_path / "state" / "ledger.db", **account)
        assert "DKIMCTL_STATE_DIR" in caught.value.hint


OFF, ON, AGAIN = {"code": "409", "enable": False}, {"code": "409", "enable": True}, {"code": "409"}
TAKEN = {"code": "409", "record": None}


@pytest.mark.parametrize(
    ("answers", "enabled", "disabled"),
    [([{}], 0, None), ([{"enable": False}], None, 0), ([{"regist_date": "long ago"}], 0, None),
     ([{"regist_date": None, "enable": False}], None, 0),
     ([{"code": "409", "regist_date": "2026-01-01T00:00:00+00:00"}], 0, None),
     ([{}, OFF, OFF, AGAIN], 0, 1), ([{}, OFF, ON, AGAIN], 2, None),
     ([{"enable": False}, AGAIN, ON], 2, None), ([AGAIN, {"enable": True}], 0, None),
     # The key was another account's before.
     ([TAKEN, TAKEN, AGAIN], 2, None),
     # Answers that say nothing about the key.
     ([{}, TAKEN, {"code": None, "record": None}], 0, None),
     # The service's clock is ahead: never in the time to come.
     ([OFF, {"enable": True, "regist_date": "2026-11-23T00:00:00+00:00"}], 1, None)],
)  # fmt: skip
def test_since_when_a_key_is_known_to_be_enabled(ledger, clock, made, answers, enabled, disabled):
    for fields in answers:
        ledger.record([made(**fields)])
        clock.now += DAY
    history = histories_of(ledger)[FIRST]
    days = [
        None if time is None else (time - AT_NOON).days
        for time in (history.enabled_at, history.disabled_at)
    ]
    assert days == [enabled, disabled]


def test_a_time_to_come_that_a_wrong_clock_has_told_does_not_last(ledger, clock, made):
    clock.now += 400 * DAY
    ledger.record([made(code="409")])
    clock.now = NOON
    ledger.record([made(code="409")])
    assert histories_of(ledger)[FIRST] == KeyHistory(AT_NOON)


class TestLooks:
    def test_a_record_is_published_since_the_first_of_an_unbroken_series(self, two, read, clock):
        two.note_looks({FIRST: "published", SECOND: "published"})
        clock.now += DAY
        two.note_looks({key_of("EXAMPLE.com", "S1"): "published", SECOND: "missing"})
        with read() as reader:
            assert histories_of(reader) == {
                FIRST: KeyHistory(AT_NOON, None, None, AT_NOON, LATER, "published"),
                SECOND: KeyHistory(AT_NOON, None, None, None, LATER, "missing"),
            }
        clock.now += DAY
        two.note_looks({SECOND: "published"})
        assert histories_of(two)[SECOND].published_at == LATER + timedelta(days=1)

    @pytest.mark.parametrize("days", [-400, 400])
    def test_what_a_wrong_clock_has_told_does_not_last(self, two, clock, days):
        """It would make a key retired too early, or not for years."""
        clock.now += days * DAY
        two.note_looks({FIRST: "published"})
        for clock.now in (NOON + DAY, NOON + 2 * DAY):
            two.note_looks({FIRST: "published"})
        assert histories_of(two)[FIRST].published_at == LATER

    def test_a_look_before_the_registration_tells_nothing(self, two, clock):
        for seconds, published in [(-2 * DAY, None), (-60, AT_NOON - timedelta(minutes=1))]:
            clock.now = NOON + seconds
            two.note_looks({FIRST: "missing"})
            two.note_looks({FIRST: "published"})
            assert histories_of(two)[FIRST].published_at == published
        # Clocks that differ by minutes do not break a series.
        clock.now = NOON + DAY
        two.note_looks({FIRST: "published"})
        assert histories_of(two)[FIRST].published_at == AT_NOON - timedelta(minutes=1)


def test_of_old_reports_the_last_mail_with_a_key_is_kept_and_none_counts_twice(two, clock):
    """Those of a day of which mail is kept may be read again."""

    def report(number, days, key):
        mail = {key: ReportedMail(Counter(a=number), Counter())}
        day = (AT_NOON + timedelta(days=days)).date()
        return DmarcReport("mx", str(number), day, mail, 0, 0)

    reports = [report(1, -100, FIRST), report(2, -90, FIRST), report(4, -90, SECOND)]
    reports.append(report(8, 0, SECOND))
    assert two.note_reports(reports) == reports
    two.forget_mail()
    assert two.note_reports(reports[1:]) == []
    assert {key: mail.passed_on for key, mail in two.mail().items()} == {
        FIRST: reports[1].day, SECOND: reports[3].day,
    }  # fmt: skip
    clock.now = NOON - 85 * DAY
    assert {key: mail.passed for key, mail in two.mail().items()} == {FIRST: 2, SECOND: 8}


def test_events_say_what_changed_and_nothing_that_stayed(ledger, clock, made, read):
    def news():
        old, seen = len(known), [*ledger.events()]
        known[:] = seen
        return [(event.what, *event.key, event.detail) for event in seen[old:]]

    known = []
    key, other = made(), made("example.net", code="409")
    ledger.note_replacements({FIRST: "s0"})
    ledger.commit(answered=[key, other, made("example.org", code="409", record=None)])
    assert news() == [
        ("registered", *FIRST, "replaces s0"), ("registered", *SECOND, "the service had it"),
    ]  # fmt: skip
    ledger.commit(answered=[made(code="409"), other], begun=[[DomainSpec("example.com", "s2")]])
    ledger.note_looks({FIRST: "missing", SECOND: "published"})
    ledger.note_looks({FIRST: "missing", SECOND: "published"}, {SECOND: "inconsistent"})
    ledger.note_looks({SECOND: "published"}, {SECOND: "inconsistent"}, restarts=True)
    ledger.note_looks({SECOND: "duplicate"})
    ledger.note_published({FIRST: "DNS"})
    verdicts = ["published", "inconsistent", "published", "duplicate"]
    assert news() == [
        *(("seen", *SECOND, verdict) for verdict in verdicts), ("published", *FIRST, "DNS"),
    ]  # fmt: skip
    ledger.close_keys({key: "s1"})
    ledger.commit(answered=[made(code="409")])  # asked again, and closed again
    ledger.close_keys({key: "s1"})
    ledger.note_signing([FIRST])
    ledger.note_signing([FIRST])
    ledger.forget([other])
    assert news() == [
        ("removed", *FIRST, "replaced by s1"), ("seen", *FIRST, "signs mail again"),
        ("forgotten", *SECOND, ""),
    ]  # fmt: skip
    clock.now += 1
    ledger.record([other])
    with read() as reader:
        (event,) = reader.events(AT_NOON + timedelta(seconds=1))
    assert event == known[0]._replace(
        at=AT_NOON + timedelta(seconds=1), what="imported", sign_domain="example.net", detail="",
    )  # fmt: skip


@pytest.mark.parametrize(
    "value",
    ["", "now", "2026-11-21T12:00:00", "2026-99-99T12:00:00+00:00", 1.5, b"\xff\x00",
     "0001-01-01T00:00:00+14:00"],
)  # fmt: skip
def test_an_invalid_time_is_ignored_and_replaced_by_the_next_one(two, place, value, made):
    two.record([made(code="409")])
    two.note_looks({FIRST: "published", SECOND: "published"})
    if isinstance(place, Database):  # its columns take text alone
        value = str(value)
    statement = "UPDATE history SET published_at = ?1, enabled_at = ?1 WHERE sign_domain = ?2"
    two._store.execute(statement, (value, FIRST.sign_domain))
    assert histories_of(two)[FIRST] == KeyHistory(looked_at=AT_NOON, verdict="published")
    two.note_looks({FIRST: "published"})
    two.record([made(code="409")])
    assert set(histories_of(two).values()) == {
        KeyHistory(AT_NOON, None, None, AT_NOON, AT_NOON, "published")
    }
