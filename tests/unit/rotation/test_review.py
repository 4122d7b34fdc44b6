"""Reviews: which keys are retired, after a look at their successors in DNS."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.dns.messages import Answer
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.verdicts import Check, Finding, Looks, Verdict, recording_looks
from dkimctl.dns.zones import Zone
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import KeyHistory, key_of
from dkimctl.names import Selection
from dkimctl.rotation.retirement import (
    KnownKeys,
    RetirementPolicy,
    RetirementStatus,
    Stage,
    read_known_keys,
    review_with_look,
)
from ledgers import histories_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
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
            selection = Selection(words, read_specs=lambda path: (), to_domain=str)
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
    assert (status.stage, unanswered) == (Stage.RETIRED, frozenset())
    assert dns.asked == [record.fqdn] * 2, "of the old key, nothing is asked"
    assert history(open_ledger).looked_at == NOW
    assert history(open_ledger).published_at == NOW - 20 * DAY


def test_a_look_of_the_same_moment_is_none_of_now(review, dns, open_ledger):
    """The clock may stand still, or jump back."""
    dns.down = True
    with open_ledger(-5 / 86400) as ledger:
        ledger.note_looks({NEW: "published"})
    status, _ = review()
    assert status.stage is Stage.DUE


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
    assert status.stage is Stage.WAITING
    assert "wait until 2026-12-05T12:00+00:00" in status.reason


def test_another_key_in_its_place_does_not_count(review, dns, pair, key_records):
    dns.values[pair[1].record.fqdn] = key_records[1024]
    status, _ = review()
    assert status.stage is Stage.DUE
    assert "DNS now: mismatch" in status.reason


def test_a_successor_with_an_unusable_record_is_never_published(review, dns, pair, open_ledger):
    with open_ledger() as ledger:
        ledger.record([pair[1]._replace(key_len=1024)])
    status, unanswered = review()
    assert (status.stage, unanswered) == (Stage.DUE, frozenset())
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
    assert (status.stage, unanswered) == (Stage.DUE, frozenset())
    dns.silent |= {pair[1].record.fqdn}
    status, unanswered = review()
    assert (status.stage, unanswered) == (Stage.DUE, {pair[0]})


class TestKnownKeys:
    @pytest.mark.parametrize("verdict", [*Verdict])
    def test_a_record_is_there_unless_the_last_look_found_it_missing(self, pair, verdict):
        known = KnownKeys([*pair], frozenset(pair), {NEW: KeyHistory(NOW, verdict=verdict)})
        status = RetirementStatus(pair[1], Stage.CURRENT, "")
        expected = {} if verdict is Verdict.MISSING else {"example.com (selector new)": verdict}
        assert known.not_seen_gone([status]) == expected

    def test_a_record_that_came_back_between_two_looks_is_published_since_then(self, pair):
        history = KeyHistory(NOW - 30 * DAY, published_at=NOW - 20 * DAY, looked_at=NOW - DAY)
        looks = Looks()
        for verdict in Verdict.MISSING, Verdict.PUBLISHED:
            looks.add(Check("example.com", "new", "", None, None, Finding(verdict)))
        [(key, after)] = (
            KnownKeys([], frozenset(), {NEW: history}).after(looks, NOW).histories.items()
        )
        assert (key, after.published_at, after.looked_at) == (NEW, NOW, NOW)
