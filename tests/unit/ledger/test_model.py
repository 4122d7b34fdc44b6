"""The ledger compared with three dictionaries that model it."""

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
from dkimctl.models.registration import DnsRecord, DomainSpec, Registration, key_of

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
DOMAINS = st.sampled_from(
    ("a.example", "A.Example", "b.example", "é.example", "É.example", "É.eXample")
)
SELECTORS = st.sampled_from((None, "s1", "S1", "s2"))
PAIRS = st.lists(
    st.tuples(DOMAINS, SELECTORS),
    max_size=4,
    unique_by=lambda pair: (pair[0].lower(), (pair[1] or "").lower()),
)
ASCII_PAIRS = PAIRS.map(lambda pairs: [pair for pair in pairs if pair[0].isascii()])
RECORDS = st.none() | st.builds(DnsRecord, st.just("f"), st.just("TXT"), st.sampled_from("vw"))
ANSWERS = st.lists(
    st.builds(
        Registration,
        sign_domain=DOMAINS,
        selector=SELECTORS,
        key_len=st.sampled_from((None, 1024, 2048)),
        start_date=st.none(),
        default=st.none() | st.integers(0, 1),
        enable=st.none() | st.booleans(),
        record=RECORDS,
        regist_date=st.none(),
        code=st.sampled_from((None, "201", "409")),
        message=st.none() | st.just("created"),
    ),
    max_size=4,
)


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


class LedgerAndModel(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.path = self.directory / "ledger.db"
        self.now = 0
        self.answers = {}
        self.intents = {}
        self.publications = {}
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
            old = self.answers.get(pair)
            self.answers[pair] = answer if old is None else merged(old, answer)
            settled = [*settled, answer[:2]]
            if not answer.is_taken:
                settled.append((answer.sign_domain, None))
        for pair in [*settled, *begun]:
            self.intents.pop(lowered(*pair), None)
        for pair in begun:
            self.intents[lowered(*pair)] = Intent(*pair, f"1970-01-01T00:00:{self.now:02}+00:00")

    @rule(published=ASCII_PAIRS, not_published=ASCII_PAIRS)
    def note(self, published, not_published):
        self.now += 1
        self.ledger.note_publications(keys(published), keys(not_published))
        for pair in not_published:
            self.publications.pop(lowered(*pair), None)
        for pair in published:
            now = datetime.fromtimestamp(self.now, UTC)
            self.publications.setdefault(lowered(*pair), now)

    @rule(pairs=ASCII_PAIRS)
    def forget(self, pairs):
        self.ledger.forget(Registration(*pair) for pair in pairs)
        for pair in pairs:
            self.answers.pop(folded(*pair), None)
            self.publications.pop(lowered(*pair), None)

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
        assert self.ledger.publications() == self.publications


TestLedgerAndModel = pytest.mark.slow(LedgerAndModel.TestCase)
TestLedgerAndModel.settings = settings(max_examples=50, stateful_step_count=15, deadline=None)
