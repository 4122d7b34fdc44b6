"""What is known of each key of a ledger, and the overview of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.dns.verdicts import Verdict
from dkimctl.formats.overview_text import make_overview
from dkimctl.ledger.ledger import Ledger
from dkimctl.names import Selection
from dkimctl.rotation.life import NOT_CHECKED, KeyStage, read_keys
from dkimctl.settings.config import RotationSettings
from portfolio import ACCOUNT, Portfolio

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SEEN = {1: Verdict.PUBLISHED}


@pytest.fixture
def portfolio(tmp_path, key_records):
    return Portfolio(tmp_path, key_records[2048].partition("p=")[2], NOW)


@pytest.fixture
def keys(portfolio, tmp_path):
    """Reads the keys that the portfolio has."""

    def keys(*words: str):
        portfolio.save()
        selection = Selection(words, read_specs=lambda path: [], to_domain=str)
        with Ledger.open_existing(tmp_path / "ledger.db", **ACCOUNT) as ledger:
            return [*read_keys(ledger, selection, RotationSettings(), NOW)]

    return keys


def test_the_length_of_a_key_is_read_from_its_record_if_the_service_omits_it(portfolio, keys):
    portfolio.add("example.com", age=1, key_len=None)
    [key] = keys()
    assert key.key_len == 2048


def test_a_key_of_another_account_has_no_state(portfolio, keys):
    portfolio.add("example.com", age=1, code="409", record=None)
    [key] = keys()
    assert (key.stage, key.state, key.age, key.enable) == (KeyStage.TAKEN, None, None, None)


def names(events):
    return [(event.what, event.key.sign_domain) for event in events]


def test_the_overview_tells_what_comes_and_counts_the_rest(portfolio, keys):
    portfolio.add("well.com", age=100, looks=SEEN)
    portfolio.add("weak.com", age=20, looks=SEEN, key_len=1024)
    portfolio.add("due.com", age=177, looks=SEEN)
    portfolio.add("late.com", age=200, looks=SEEN)
    portfolio.add("later.com", age=160, looks=SEEN)
    portfolio.add("starts.com", age=10, starts=-15, looks=SEEN)
    portfolio.add("harmed.com", age=10, looks={1: Verdict.MISSING})
    portfolio.add("off.com", age=10, starts=-2, enable=False)
    overview = make_overview(keys(), NOW, 7 * DAY)
    assert (overview.domains, overview.keys) == (8, 8)
    assert overview.states == {"published": 6, "missing": 1, NOT_CHECKED: 1}
    assert overview.key_lengths == {2048: 7, 1024: 1}
    assert overview.looked_at == NOW - DAY
    assert [key.sign_domain for key in overview.urgent] == ["harmed.com"]
    assert [key.sign_domain for key in overview.overdue] == ["late.com"]
    assert names(overview.week) == [
        ("register successor", "late.com"), ("register successor", "due.com")
    ]  # fmt: skip
    assert names(overview.month) == [
        ("signing starts", "starts.com"), ("register successor", "later.com")
    ]  # fmt: skip
    assert [band.keys for band in overview.ages] == [4, 0, 3, 1, 0]


def test_the_bands_of_ages_hold_each_key_once(portfolio, keys):
    for age in (0, 29, 30, 89, 90, 179, 180, 364, 365, 4000):
        portfolio.add(f"age{age}.com", age=age)
    overview = make_overview(keys(), NOW, 7 * DAY)
    assert [(band.begin, band.end, band.keys) for band in overview.ages] == [
        (0, 30, 2), (30, 90, 2), (90, 180, 2), (180, 365, 2), (365, None, 2)
    ]  # fmt: skip
