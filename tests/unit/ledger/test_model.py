"""The ledger compared with dictionaries that model it."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dkimctl.ledger.intents import Intent
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Alarm, ClosedKey, DnsRecord, DomainSpec, KeyHistory, Registration, key_of
from ledgers import histories_of

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
DOMAINS = st.sampled_from(
    ("a.example", "A.Example", "b.example", "é.example", "É.example", "É.eXample")
)
SELECTORS = st.sampled_from((None, "s1", "S1", "s2"))
PAIRS = st.lists(
    st.tuples(DOMAINS, SELECTORS), max_size=4, unique_by=lambda pair: lowered(pair[0], pair[1])
)  # fmt: skip
ASCII_PAIRS = PAIRS.map(lambda pairs: [pair for pair in pairs if pair[0].isascii()])
ANSWERS = st.lists(
    st.builds(
        Registration, sign_domain=DOMAINS, selector=SELECTORS,
        key_len=st.sampled_from((None, 1024, 2048)),
        start_date=st.none() | st.just("2027-01-01T00:00+00:00"),
        default=st.none() | st.integers(0, 1), enable=st.none() | st.booleans(),
        record=st.none()
        | st.builds(DnsRecord, st.just("f"), st.just("TXT"), st.sampled_from("vw")),
        regist_date=st.none() | st.just("1970-01-01T00:00:00+00:00"),
        code=st.sampled_from((None, "201", "409")), message=st.none() | st.just("created"),
    ),
    max_size=4, unique_by=lambda answer: answer.key,
)  # fmt: skip
TIMES = st.integers(0, 10**10).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
ALARMS = st.lists(
    st.builds(
        Alarm, subject=st.sampled_from(("a.example s1", "A.example s1", "zone é.example")),
        problem=st.sampled_from(("missing", "Missing", "")), first_seen=TIMES, looked_at=TIMES,
        told_at=st.none() | TIMES,
    ),
    max_size=3, unique_by=lambda alarm: alarm[:2],
)  # fmt: skip


def folded(sign_domain, selector):
    """As SQLite's NOCASE compares names: only ASCII letters ignore case."""
    return tuple(
        "".join(char.lower() if char.isascii() else char for char in name)
        for name in (sign_domain, selector or "")
    )


def lowered(sign_domain, selector):
    """As intents are compared."""
    return sign_domain.lower(), (selector or "").lower()


def keys(pairs):
    return (key_of(*pair) for pair in pairs)


def merged(old, new):
    """An answer stored after another: fields that it leaves out keep their values."""
    kept = {k: v for k, v in old._asdict().items() if new._asdict()[k] is None}
    names = {"sign_domain": old.sign_domain, "selector": old.selector}
    return new._replace(**kept | names | {"code": new.code, "message": new.message})


def without_accents(histories):
    """For SQLite, names that differ in the case of other letters differ."""
    return {key: history for key, history in histories.items() if key.sign_domain.isascii()}


def after(answer, history, now):
    """The history of a key after an answer."""
    if answer.enable is False:
        return history._replace(disabled_at=history.disabled_at or now)
    if history.disabled_at is not None and answer.enable is None:
        return history
    if history.enabled_at is not None and history.disabled_at is None:
        return history
    registered_at = answer.regist_date if answer.code == "201" else None
    at = datetime.fromisoformat(registered_at) if registered_at else now
    return history._replace(enabled_at=at, disabled_at=None)


class LedgerAndModel(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.path = self.directory / "ledger.db"
        self.now = 0
        self.answers, self.intents, self.histories, self.closed, self.alarms = {}, {}, {}, {}, {}
        self.ledger = self.open()

    def open(self):
        return Ledger.open(self.path, **ACCOUNT, clock=lambda: float(self.now))

    def teardown(self):
        self.ledger.close()
        shutil.rmtree(self.directory)

    @rule(answered=ANSWERS, settled=PAIRS, begun=PAIRS, size=st.integers(1, 4))
    def commit(self, answered, settled, begun, size):
        self.now += 1
        requests = (begun[first : first + size] for first in range(0, len(begun), size))
        sent = ([DomainSpec(*pair) for pair in pairs] for pairs in requests)
        self.ledger.commit(answered=answered, settled=keys(settled), begun=sent)
        for answer in answered:
            pair = folded(*answer[:2])
            self.closed.pop(pair, None)
            old = self.answers.get(pair)
            self.answers[pair] = answer if old is None else merged(old, answer)
            settled = [*settled, answer[:2]]
            if not answer.is_taken:
                settled.append((answer.sign_domain, None))
                self.answer(answer, is_new=old is None)
        for pair in [*settled, *begun]:
            self.intents.pop(lowered(*pair), None)
        for pair in begun:
            self.intents[lowered(*pair)] = Intent(*pair, f"1970-01-01T00:00:{self.now:02}+00:00")

    def answer(self, answer, *, is_new):
        """A new key that is disabled is so since its registration; another one since now."""
        known = self.histories.get(answer.key, KeyHistory())
        is_dated = answer.code == "201" and answer.regist_date
        if is_new and is_dated and answer.enable is False:
            disabled_at = datetime.fromisoformat(answer.regist_date)
            self.histories[answer.key] = known._replace(disabled_at=disabled_at)
        else:
            self.histories[answer.key] = after(answer, known, self.time)

    @property
    def time(self):
        return datetime.fromtimestamp(self.now, UTC)

    @rule(pairs=ASCII_PAIRS, verdict=st.sampled_from(("published", "missing")))
    def look(self, pairs, verdict):
        self.now += 1
        self.ledger.note_looks(dict.fromkeys(keys(pairs), verdict))
        for key in keys(pairs):
            known = self.histories.get(key, KeyHistory())
            published_at = (known.published_at or self.time) if verdict == "published" else None
            self.histories[key] = known._replace(
                published_at=published_at, looked_at=self.time, verdict=verdict
            )

    @rule(pairs=ASCII_PAIRS, selector=st.sampled_from(("s0", "s9")))
    def replace(self, pairs, selector):
        self.ledger.note_replacements(dict.fromkeys(keys(pairs), selector))
        for key in keys(pairs):
            known = self.histories.get(key, KeyHistory())
            self.histories[key] = known._replace(replaces=selector)

    @rule(pairs=ASCII_PAIRS)
    def forget(self, pairs):
        self.ledger.forget(Registration(*pair) for pair in pairs)
        for pair in pairs:
            self.answers.pop(folded(*pair), None)
            self.histories.pop(lowered(*pair), None)

    @rule(pairs=ASCII_PAIRS, successor=st.sampled_from((None, "s9")))
    def retire(self, pairs, successor):
        self.now += 1
        retired = [
            self.answers.pop(key) for pair in pairs if (key := folded(*pair)) in self.answers
        ]
        self.ledger.close_keys(dict.fromkeys(retired, successor))
        for one in retired:
            history = self.histories.pop(one.key, KeyHistory())
            started_at = one.starts_at and max(one.starts_at, history.enabled_at or one.starts_at)
            self.closed[folded(*one[:2])] = ClosedKey(
                one.sign_domain, one.selector or "", one.default or 0, one.created_at, started_at,
                successor, self.time,
            )  # fmt: skip

    @rule(old=ALARMS, new=ALARMS)
    def replace_alarms(self, old, new):
        self.ledger.replace_alarms(old, new)
        for alarm in old:
            self.alarms.pop(alarm[:2], None)
        self.alarms |= {alarm[:2]: alarm for alarm in new}

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = self.open()

    @rule(domain=DOMAINS)
    def ask_for_one(self, domain):
        name = folded(domain, None)[0]
        known = [answer for pair, answer in self.answers.items() if pair[0] == name]
        intents = [intent for pair, intent in self.intents.items() if pair[0] == domain.lower()]
        assert self.ledger.of_domain(domain) == known
        assert self.ledger.intents_of(domain) == intents

    @invariant()
    def all_is_there(self):
        assert list(self.ledger.all()) == [answer for _, answer in sorted(self.answers.items())]
        assert self.ledger.intents() == list(self.intents.values())
        assert self.ledger.closed_keys() == [key for _, key in sorted(self.closed.items())]
        assert self.ledger.alarms() == sorted(self.alarms.values(), key=lambda alarm: alarm[:2])
        ours = {answer.key for answer in self.answers.values() if not answer.is_taken}
        known = {key: history for key, history in self.histories.items() if key in ours}
        assert without_accents(histories_of(self.ledger)) == without_accents(known)


TestLedgerAndModel = pytest.mark.slow(LedgerAndModel.TestCase)
TestLedgerAndModel.settings = settings(max_examples=50, stateful_step_count=15, deadline=None)
