"""Which registrations are retired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.messages import Answer
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.verdicts import Check, Finding, Looks, Verdict, recording_looks
from dkimctl.dns.zones import Zone
from dkimctl.ledger.ledger import DomainKeys, Ledger
from dkimctl.models import KeyHistory, Outcome, Registration, key_of
from dkimctl.names import Selection
from dkimctl.rotation.retirement import (
    GRACE_PERIOD,
    KnownKeys,
    Retirement,
    RetirementPolicy,
    RetirementStatus,
    as_result,
    keys_past_grace,
    not_seen_gone,
    read_known_keys,
    review_with_look,
    statuses_of,
)
from ledgers import histories_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = RetirementPolicy(NOW, NOW - DAY)
ASSUMING = POLICY._replace(assume_successors=True)
RETIRED, DUE, WAITING, UNKNOWN, CURRENT = Retirement


def ago(days: float) -> str:
    return (NOW - days * DAY).isoformat(timespec="minutes")


def time(days: float | None) -> datetime | None:
    return None if days is None else NOW - days * DAY


def started(days: float, *, enabled: float | None = 1000, disabled: float | None = None,
            replaces: str | None = None, published: float | None = None, looked: float = 0,
            verdict: str | None = None, **fields) -> tuple[dict, KeyHistory]:  # fmt: skip
    """A key that has started so many days ago; its other times are in days ago, too."""
    if published is not None:
        verdict = verdict or "published"
    history = KeyHistory(
        time(enabled), time(disabled), replaces, time(published),
        time(looked) if verdict else None, verdict,
    )  # fmt: skip
    return {"start_date": ago(days), **fields}, history


@pytest.fixture
def make_keys(make_registration):
    """The history of each registration, from what `started` gives for each selector."""

    def make_keys(**keys):
        return {
            make_registration(selector=selector, **fields): history
            for selector, (fields, history) in keys.items()
        }

    return make_keys


@pytest.fixture
def status_of(make_keys):
    """The statuses of a domain's keys, by selector."""

    def status_of(policy=POLICY, **keys):
        histories = make_keys(**keys)
        statuses = list(statuses_of(histories, policy))
        assert {status.registration for status in statuses} == set(histories)
        return {status.registration.selector: status for status in statuses}

    return status_of


def stages(statuses) -> list[Retirement]:
    return [status.retirement for status in statuses.values()]


def test_key_is_retired_14_days_after_its_successor_took_over(status_of):
    statuses = status_of(old=started(200), new=started(14, replaces="OLD", published=14))
    assert stages(statuses) == [RETIRED, CURRENT]
    assert statuses["old"].reason == (
        "its successor new started on 2026-11-07 and was seen published from 2026-11-07 to "
        "2026-11-21"
    )
    assert statuses["old"].is_over
    assert "run `dkimctl rotate`" in statuses["new"].reason


@pytest.mark.parametrize(
    ("new", "stage", "reason"),
    [
        (started(13, published=30), WAITING, "started on 2026-11-08"),
        (started(13, published=30), WAITING, "wait until 2026-11-22T12:00+00:00"),
        (started(30, published=13.9), WAITING, "wait until 2026-11-21T14:24+00:00"),
        (started(10, published=1), WAITING, "wait until 2026-12-04T12:00+00:00"),
        (started(-3, published=0), WAITING, "its successor new starts on 2026-11-24"),
        (started(-3), WAITING, "was never seen published: run `dkimctl check-dns`"),
        (started(90, published=90, enabled=2), WAITING, "was enabled on 2026-11-19"),
        (started(90, published=90, enabled=2), WAITING, "wait until 2026-12-03T12:00+00:00"),
        (started(30), DUE, "but was never seen published"),
        # Since when it is published is not known.
        (started(30, verdict="published"), DUE, "DNS on 2026-11-21: published"),
        (started(30, published=-400), DUE, "was seen published from 2027"),  # by such a clock
        (started(30, published=30, verdict="mismatch"), DUE, "was seen published from"),
        (started(30, published=30, looked=1.1), DUE, "from 2026-10-22 to 2026-11-20"),
        (started(30, published=30, looked=-1), DUE, "to 2026-11-22"),  # by a clock that was wrong
        (started(30, verdict="missing", looked=2), DUE, "DNS on 2026-11-19: missing"),
        (started(30, published=30, enable=False), CURRENT, "no newer selector"),
        (started(30, published=30, disabled=1), CURRENT, "no newer selector"),
        (started(30, published=30, enabled=None), CURRENT, "no newer selector"),
        (started(30, published=30, code="409", record=None), CURRENT, "no newer selector"),
        (started(30, published=30, default=1), CURRENT, "no newer selector"),
        (started(200, published=30), CURRENT, "no newer selector"),
        (started(201, published=30), CURRENT, "no newer selector"),
        (({"regist_date": None}, KeyHistory(time(9), None, None, time(9))), CURRENT, "no newer"),
        (started(0, start_date="9999-12-31T00:00+00:00", published=30), WAITING, "on 9999-12-31"),
    ],
)  # fmt: skip
def test_reason_says_what_is_missing_until_then(status_of, new, stage, reason):
    fields, history = new
    status = status_of(old=started(200), new=(fields, history._replace(replaces="old")))["old"]
    assert status.retirement is stage
    assert reason in status.reason


def test_a_start_date_before_the_registration_must_be_later_as_well(status_of):
    """The service may go by the start_date alone, and sign with the old key."""
    old = started(200, regist_date=ago(210))
    looks = {"regist_date": ago(30), "replaces": "old", "published": 30}
    assert stages(status_of(old=old, new=started(201, **looks)))[1] is CURRENT
    assert stages(status_of(old=old, new=started(200, **looks)))[0] is CURRENT
    assert stages(status_of(old=old, new=started(199, **looks)))[0] is RETIRED


def test_signing_starts_at_registration_without_a_start_date(status_of):
    old = {"regist_date": ago(200)}, KeyHistory(time(200))
    looks = KeyHistory(time(20), None, "old", time(19), NOW, "published")
    assert stages(status_of(old=old, new=({"regist_date": ago(20)}, looks)))[0] is RETIRED
    later = started(2, regist_date=ago(20), published=19, replaces="old")
    assert stages(status_of(old=old, new=later))[0] is WAITING


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (started(200, enable=False, enabled=None, disabled=200), "it was never enabled"),
        (started(-2), "it starts on 2026-11-23"),
        (started(200, code="409", record=None), "it belongs to another account"),
        (({"start_date": None}, KeyHistory(NOW)), "neither its start_date nor its regist_date"),
    ],
)
def test_a_key_that_never_signed_is_not_replaced(status_of, old, reason):
    """Such as a standby key, which is kept disabled for an emergency."""
    new = started(20, published=20, replaces="old")
    for policy in (POLICY, ASSUMING):
        status = status_of(policy, old=old, new=new)["old"]
        assert (status.retirement, reason in status.reason) == (CURRENT, True)


def test_an_old_key_that_was_disabled_is_retired(status_of):
    old = started(200, enable=False, enabled=200, disabled=20)
    assert stages(status_of(old=old, new=started(20, published=20, replaces="old")))[0] is RETIRED


def test_a_successor_replaces_what_its_predecessor_replaced(status_of):
    statuses = status_of(
        first=started(400), second=started(200, replaces="first", verdict="missing"),
        third=started(20, replaces="second", published=20),
    )  # fmt: skip
    assert stages(statuses) == [RETIRED, RETIRED, CURRENT]
    assert "successor third" in statuses["first"].reason
    successors = [one.selector for one in statuses["first"].successors]
    assert successors == ["third", "second"], "the best first"


def test_keys_that_replace_each_other_do_not_retire_both(status_of):
    statuses = status_of(
        one=started(100, replaces="other", published=100),
        other=started(90, replaces="one", published=90),
        itself=started(80, replaces="itself", published=80),
    )
    assert stages(statuses) == [RETIRED, CURRENT, CURRENT]


class TestUnknown:
    def test_without_a_record_of_it_no_key_is_a_successor(self, status_of):
        statuses = status_of(old=started(200), new=started(20, published=20))
        assert stages(statuses) == [UNKNOWN, CURRENT]
        assert "it is not recorded whether new replaces it" in statuses["old"].reason

    @pytest.mark.parametrize(
        "new",
        [started(20, published=20, default=1), started(20, published=20, enable=False),
         started(200, published=20), started(20, published=20, replaces="another")],
    )  # fmt: skip
    def test_some_keys_are_no_successor_by_any_assumption(self, status_of, new):
        for policy in (POLICY, ASSUMING):
            assert stages(status_of(policy, old=started(200), new=new))[0] is CURRENT

    def test_what_replaces_an_assumed_successor_is_one(self, status_of):
        """The key in between was rotated, and disabled or removed from DNS."""
        for between in (started(100, enable=False, disabled=10), started(100, verdict="missing")):
            keys = {
                "old": started(200), "between": between,
                "new": started(20, replaces="between", published=20),
            }  # fmt: skip
            assert stages(status_of(ASSUMING, **keys)) == [RETIRED, RETIRED, CURRENT]
            assert stages(status_of(**keys)) == [UNKNOWN, RETIRED, CURRENT]

    def test_a_recorded_successor_needs_no_assumption(self, status_of):
        statuses = status_of(
            old=started(200), new=started(5, replaces="old"), other=started(50, published=50)
        )
        assert statuses["old"].retirement is WAITING
        assert "successor new" in statuses["old"].reason


def test_domains_do_not_retire_each_other_and_names_are_case_insensitive(make_registration):
    old = make_registration("Example.com", "s1", start_date=ago(200))
    new = make_registration("example.COM", "S2", start_date=ago(20))
    histories = {
        new: KeyHistory(time(20), None, "S1", time(20), NOW, "published"),
        old: KeyHistory(time(200)),
    }
    statuses = list(statuses_of(histories, POLICY))
    assert [(status.registration, status.retirement) for status in statuses] == [
        (old, RETIRED), (new, CURRENT)
    ]  # fmt: skip


def test_result_is_retired_once_the_grace_period_is_over(status_of):
    new = {"replaces": "old", "published": 20}
    listed = status_of(old=started(300), new=started(20, **new))
    assert as_result(listed["old"])[1:] == (Outcome.RETIRED, listed["old"].reason)
    assert as_result(listed["new"])[1:] == (Outcome.EXISTS, "")
    due = status_of(old=started(300), new=started(20, looked=2, **new))["old"]
    assert (due.retirement, as_result(due).outcome) == (DUE, Outcome.RETIRED)
    unseen = status_of(old=started(300), new=started(20, replaces="old"))["old"]
    assert (unseen.retirement, as_result(unseen).outcome) == (DUE, Outcome.EXISTS)
    broken = status_of(old=started(300, key_len=1024), new=started(20, **new))["old"]
    broken = broken._replace(registration=broken.registration._replace(key_len=2048))
    assert as_result(broken).outcome is Outcome.UNUSABLE
    theirs = status_of(theirs=started(1, code="409", record=None))["theirs"]
    assert as_result(theirs).outcome is Outcome.TAKEN


def past_grace(histories):
    """Of a ledger that has these keys of one domain."""
    domain = DomainKeys("example.com", histories)
    ledger = SimpleNamespace(rotated_domains=lambda: {"example.com"}, domains=lambda: [domain])
    return keys_past_grace(ledger, NOW, GRACE_PERIOD)


def test_records_may_be_gone_once_the_grace_period_is_over(make_keys):
    for new, is_over in [
        (started(20, replaces="old", published=20), True),
        (started(20, replaces="old", published=20, looked=9), True),
        (started(20, replaces="old", verdict="missing"), False),
        (started(5, replaces="old", published=20), False),
        (started(20, published=20), False),
    ]:
        keys = past_grace(make_keys(old=started(200), new=new))
        assert set(keys) == ({key_of("example.com", "old")} if is_over else set())
    keys = past_grace(make_keys(old=started(200), new=started(20, replaces="old", published=20)))
    assert list(keys.values()) == [
        "new has replaced it; to remove it from the ledger: `dkimctl ledger forget example.com`"
    ]


SELECTORS = ("s1", "s2", "s3")
DAYS = st.integers(-30, 30)
KEYS = st.dictionaries(
    st.sampled_from(SELECTORS),
    st.tuples(
        st.builds(
            Registration,
            st.just("example.com"),
            start_date=st.none() | DAYS.map(ago),
            default=st.sampled_from((None, 0, 1)),
            enable=st.none() | st.booleans(),
            regist_date=st.none() | DAYS.map(ago),
            code=st.sampled_from(("201", "409")),
        ),
        st.builds(
            KeyHistory,
            st.none() | DAYS.map(time),
            st.none() | DAYS.map(time),
            st.none() | st.sampled_from(SELECTORS),
            st.none() | DAYS.map(time),
            st.none() | DAYS.map(time),
            st.none() | st.sampled_from(("published", "missing")),
        ),
    ),
)


@given(KEYS, st.booleans())
def test_a_retired_key_has_a_successor_that_signs_and_is_published(keys, assume):
    """The rule, applied pair by pair."""
    registrations = {name: one._replace(selector=name) for name, (one, _) in keys.items()}
    histories = {registrations[name]: history for name, (_, history) in keys.items()}
    policy = POLICY._replace(assume_successors=assume)
    statuses = list(statuses_of(histories, policy))
    assert len(statuses) == len(registrations)

    def start(name):
        one = registrations[name]
        dates = filter(None, (one.start_date, one.regist_date))
        return max(map(datetime.fromisoformat, dates), default=None)

    def is_made_for(name, old, steps=3):
        replaces = keys[name][1].replaces
        return steps > 0 and replaces is not None and (
            replaces == old or (replaces in keys and is_made_for(replaces, old, steps - 1))
        )  # fmt: skip

    def is_assumed(new, old, steps=3):
        """A newer key of which nothing is recorded, or made for one."""
        replaces = keys[new][1].replaces
        if replaces is None:
            return is_newer(new, old)
        return steps > 0 and replaces in keys and is_assumed(replaces, old, steps - 1)

    def is_newer(new, old):
        starts = start(new), start(old)
        return (
            None not in starts and starts[0] > starts[1]
            and (registrations[new].default or 0) == (registrations[old].default or 0)
        )  # fmt: skip

    def replaces(new, old):
        one, history = registrations[new], keys[new][1]
        may = is_made_for(new, old) or (assume and is_assumed(new, old))
        times = (start(new), history.enabled_at, history.published_at)
        return (
            may and not one.is_taken and one.enable is not False and history.disabled_at is None
            and (one.default or 0) == (registrations[old].default or 0)
            and None not in times and start(new) > start(old)
            and max(times) <= NOW - GRACE_PERIOD
            and history.verdict == "published"
            and history.looked_at is not None and NOW - DAY <= history.looked_at <= NOW
        )  # fmt: skip

    for status in statuses:
        name = status.registration.selector
        is_old = (
            not registrations[name].is_taken and start(name) is not None and start(name) <= NOW
            and keys[name][1].enabled_at is not None
        )  # fmt: skip
        expected = is_old and any(replaces(new, name) for new in keys)
        assert (status.retirement is RETIRED) == expected
        assert status.reason


ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
OLD, NEW = key_of("example.com", "old"), key_of("example.com", "new")


class Dns:
    """The zone example.com, at servers that have `values`; `down`: the last one does not answer."""

    is_given = False

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.down = False
        self.silent: set[str] = set()  # names for which no server has an answer
        self.asked: list[str] = []

    async def zone_with(self, name):
        servers = [NameServer(f"ns{n}.test", frozenset({f"ns{n}.test"}), self) for n in (1, 2)]
        return Zone("example.com", servers)

    async def why_bogus(self, questions) -> list[str]:
        return [""] * len(questions)

    async def prefetch(self, questions) -> None:
        """Nothing: each is asked later."""

    async def ask(self, question) -> Answer:
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        if name in self.silent or (self.down and len(self.asked) % 2 == 0):
            raise NoAnswer("it does not answer")
        value = self.values.get(name)
        values = () if value is None else (value.encode(),)
        return Answer(0, True, False, values, zone="" if values else "example.com")


class Progress:
    checked = pause = staticmethod(lambda *_: None)


@pytest.fixture
def dns():
    return Dns()


@pytest.fixture
def open_ledger(tmp_path):
    def open_(days: float = 0) -> Ledger:
        now = (NOW - days * DAY).timestamp()
        return Ledger.open(tmp_path / "ledger.db", **ACCOUNT, clock=lambda: now)

    return open_


@pytest.fixture
def pair(open_ledger, make_registration):
    """A key and its successor, which started 30 days ago and was published for 20."""

    def make(selector, days):
        at = (NOW - days * DAY).isoformat(timespec="minutes")
        return make_registration(selector=selector, start_date=at, regist_date=at)

    old, new = make("old", 300), make("new", 30)
    with open_ledger(30) as ledger:
        ledger.record([old, new])
        ledger.note_replacements({NEW: "old"})
    with open_ledger(20) as ledger:
        ledger.note_looks({NEW: "published"})
    return old, new


@pytest.fixture
def review(open_ledger, dns, pair):
    """Review all keys; gives the old key's status, and whether it was unanswered."""

    def review(*words):
        with open_ledger() as ledger:
            selection = Selection(words or None)
            known = read_known_keys(ledger, selection)
        with recording_looks(open_ledger, on_failure=pytest.fail) as looks:
            done = review_with_look(
                known,
                RetirementPolicy(NOW, NOW - DAY),
                lambda: dns,
                progress=Progress(),
                looks=looks,
                clock=lambda: NOW + timedelta(seconds=5),
            )
        [status] = [one for one in done.statuses if one.registration == pair[0]]
        return status, done.unanswered

    return review


def history(open_ledger):
    with open_ledger() as ledger:
        return histories_of(ledger)[NEW]


def test_a_successor_that_is_published_now_retires_the_old_key(review, dns, pair, open_ledger):
    record = pair[1].record
    dns.values[record.fqdn] = record.value
    status, unanswered = review()
    assert (status.retirement, unanswered) == (Retirement.RETIRED, frozenset())
    assert dns.asked == [record.fqdn] * 2, "of the old key, nothing is asked"
    assert history(open_ledger).looked_at == NOW
    assert history(open_ledger).published_at == NOW - 20 * DAY


def test_a_look_of_the_same_moment_is_none_of_now(review, dns, open_ledger):
    """The clock may stand still, or jump back."""
    dns.down = True
    with open_ledger(-5 / 86400) as ledger:
        ledger.note_looks({NEW: "published"})
    status, _ = review()
    assert status.retirement is Retirement.DUE


@pytest.mark.parametrize("looks", [{5: ["missing"]}, {-400: ["missing", "published"]}], ids=str)
def test_a_successor_that_reappeared_is_waited_for(review, dns, pair, open_ledger, looks):
    """Also if a wrong clock saw it published in 2028: what is certain is that it is now."""
    [(days, verdicts)] = looks.items()
    with open_ledger(days) as ledger:
        for verdict in verdicts:
            ledger.note_looks({NEW: verdict})
    record = pair[1].record
    dns.values[record.fqdn] = record.value
    status, _ = review()
    assert status.retirement is Retirement.WAITING
    assert "wait until 2026-12-05T12:00+00:00" in status.reason


def test_another_key_in_its_place_does_not_count(review, dns, pair, key_records):
    dns.values[pair[1].record.fqdn] = key_records[1024]
    status, _ = review()
    assert status.retirement is Retirement.DUE
    assert "DNS now: mismatch" in status.reason


def test_a_successor_with_an_unusable_record_is_never_published(review, dns, pair, open_ledger):
    with open_ledger() as ledger:
        ledger.record([pair[1]._replace(key_len=1024)])
    status, unanswered = review()
    assert (status.retirement, unanswered) == (Retirement.DUE, frozenset())
    assert dns.asked == []


def test_one_of_two_successors_that_answers_is_an_answer(review, dns, pair, open_ledger):
    """So it is a no, and not a failure of DNS."""
    other = pair[1]._replace(selector="other", record=pair[1].record._replace(
        fqdn="other._domainkey.example.com"))  # fmt: skip
    with open_ledger(30) as ledger:
        ledger.record([other])
        ledger.note_replacements({other.key: "old"})
    with open_ledger(20) as ledger:
        ledger.note_looks({other.key: "published"})
    dns.silent = {other.record.fqdn}
    status, unanswered = review()
    assert (status.retirement, unanswered) == (Retirement.DUE, frozenset())
    dns.silent |= {pair[1].record.fqdn}
    status, unanswered = review()
    assert (status.retirement, unanswered) == (Retirement.DUE, {pair[0]})


class TestKnownKeys:
    @pytest.mark.parametrize("verdict", [*Verdict])
    def test_a_record_is_there_unless_the_last_look_found_it_missing(self, pair, verdict):
        history = KeyHistory(NOW, verdict=verdict)
        status = RetirementStatus(pair[1], history, Retirement.CURRENT, "")
        expected = {} if verdict is Verdict.MISSING else {"example.com (selector new)": verdict}
        assert not_seen_gone([status]) == expected

    def test_a_record_that_came_back_between_two_looks_is_published_since_then(self, pair):
        history = KeyHistory(NOW - 30 * DAY, published_at=NOW - 20 * DAY, looked_at=NOW - DAY)
        looks = Looks()
        for verdict in Verdict.MISSING, Verdict.PUBLISHED:
            looks.add(Check("example.com", "new", "", None, None, Finding(verdict)))
        known = KnownKeys([{pair[1]: history}], frozenset())
        [(key, after)] = known.after(looks, NOW).histories.items()
        assert (key, after.published_at, after.looked_at) == (NEW, NOW, NOW)
