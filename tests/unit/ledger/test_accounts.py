"""Ledgers in which older versions kept equivalent URLs apart: nothing in them is lost."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from datetime import UTC, datetime

import pytest

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, KeyHistory, Registration, key_of
from ledgers import histories_of
from old_ledgers import make_version_4

URL = "https://api.example"  # that of `read` and `write`
SPELLINGS = (f"{URL}:443", f"{URL}:0443", f"{URL}:", URL, f"{URL}/x/..")
KEY = key_of("example.com", "s1")


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

    def opened(ask, **account):
        make_version_4(path)
        before = path.read_bytes()
        with read(**account) as ledger:
            answer = ask(ledger)
        assert path.read_bytes() == before
        with write(**account) as ledger:
            assert ask(ledger) == answer
        with read(**account) as ledger:
            assert ask(ledger) == answer
        return answer

    return opened


def accounts_in(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT base_url, client_id FROM account").fetchall()


def strays_in(path):
    """Rows of accounts that do not exist."""
    query = " UNION ALL ".join(
        f"SELECT '{table}' FROM {table} WHERE account_id NOT IN (SELECT id FROM account)"
        for table in ("registration", "history", "open_request")
    )
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("urls", [SPELLINGS, SPELLINGS[::-1], SPELLINGS[:3]], ids=len)
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
    assert strays_in(path) == []


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


def second(number):
    return datetime.fromtimestamp(number, UTC)


@pytest.mark.parametrize("urls", [(f"{URL}:443", URL), (URL, f"{URL}:443")], ids=str)
@pytest.mark.parametrize(
    ("looks", "others", "expected"),
    [
        ([(1, "published")], [(2, "published")], (2, 2, "published")),
        ([(1, "published"), (3, "published")], [(2, "published")], (2, 3, "published")),
        ([(1, "published"), (3, "published")], [(2, "missing")], (2, 3, "published")),
        ([(1, "published")], [(2, "missing")], (None, 2, "missing")),
        ([(2, "published")], [(1, "missing")], (2, 2, "published")),
        ([(1, "published")], [], (1, 1, "published")),
    ],
)
def test_the_last_look_counts_and_a_break_is_not_forgotten(
    under, opened, looks, others, expected, urls
):
    start = 4_000_000_000  # after the registration
    for url, seen in zip(urls, (looks, others), strict=True):
        with under(url) as ledger:
            ledger.record([registration()])
        for at, verdict in seen:
            with under(url, start + at) as ledger:
                ledger.note_looks({KEY: verdict})
    published_at, looked_at, verdict = expected
    history = opened(histories_of)[KEY]
    assert history.published_at == (published_at and second(start + published_at))
    assert (history.looked_at, history.verdict) == (second(start + looked_at), verdict)


@pytest.mark.parametrize("urls", [(f"{URL}:443", URL), (URL, f"{URL}:443")], ids=str)
def test_the_times_of_a_key_are_those_of_the_answer_that_is_kept(under, opened, urls):
    """And what was seen of the other key, which is gone, does not count for this one."""
    with under(urls[0], 1_800_000_000) as ledger:
        ledger.record([OLDER._replace(enable=False)])
        ledger.note_replacements({KEY: "s0"})
        ledger.note_looks({KEY: "published"})
    with under(urls[1], 1_900_000_000) as ledger:
        ledger.record([NEWER._replace(code="409")])  # enabled since then, as far as is known
    assert opened(histories_of)[KEY] == KeyHistory(second(1_900_000_000), None, "s0")


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


MIGRATE = """
from dkimctl.ledger.opening import migrate
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
migrate(connection, path)
print("migrated", flush=True)
sys.stdin.readline()
"""


def test_a_kill_during_the_migration_leaves_the_old_ledger(path, under, start, read, write):
    for number, url in enumerate(SPELLINGS):
        with under(url) as ledger:
            ledger.record([registration(selector=f"s{number}")])
    make_version_4(path)
    process = start(MIGRATE)
    assert process.stdout.readline() == "migrated\n"
    process.kill()
    process.wait()
    assert len(accounts_in(path)) == len(SPELLINGS)
    for open_ in read, write, read:
        with open_() as ledger:
            assert len(list(ledger.all())) == len(SPELLINGS)
    assert accounts_in(path) == [(URL, "me")]


def test_a_run_of_the_old_version_that_goes_on_fails_rather_than_lose_an_answer(path, under, write):
    with under(f"{URL}:443") as ledger:
        ledger.commit(begun=[[DomainSpec("a.example")]])
    make_version_4(path)
    with contextlib.closing(sqlite3.connect(path)) as old:
        with write() as ledger:
            assert len(ledger.intents()) == 1
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            old.execute("DELETE FROM sending WHERE id = 1")  # with each answer
