"""What is sent for an entry, by what the ledger has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dkimctl.models import DomainSpec, Outcome
from dkimctl.registration.preflight import Planner

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WITHOUT = DomainSpec("example.com", None, 2048, "2027-01-01T00:00+00:00")


@pytest.fixture
def plan(ledger):
    return lambda spec, **options: Planner(ledger, now=NOW, **options).plan_entry(spec)


class TestRefresh:
    def test_it_asks_for_the_selector_as_the_ledger_spells_it(
        self, ledger, plan, make_registration
    ):
        ledger.record([make_registration(selector="s1")])
        spec = DomainSpec("example.com", "S1", 2048)
        assert plan(spec, refresh=True) == spec._replace(selector="s1")

    def test_it_asks_for_the_key_that_an_entry_without_selector_stands_for(
        self, ledger, plan, make_registration
    ):
        """And not for another length or start, which would be refused as different."""
        start = "2026-01-01T09:00+09:00"
        ledger.record([make_registration(key_len=1024, start_date=start)])
        assert plan(WITHOUT, refresh=True) == DomainSpec("example.com", "s1", 1024, start)

    def test_a_start_with_seconds_is_not_asked_for(self, ledger, plan, make_registration):
        ledger.record([make_registration(start_date="2026-01-01T09:00:30+09:00")])
        assert plan(WITHOUT, refresh=True) == DomainSpec("example.com", "s1", 2048)

    def test_a_registration_without_selector_is_never_asked_for_again(
        self, ledger, plan, make_registration
    ):
        """The service would take it for another one, and register the domain twice."""
        ledger.record([make_registration()._replace(selector=None)])
        result = plan(WITHOUT, refresh=True)
        assert result.outcome is Outcome.UNUSABLE


class TestWithoutSelector:
    def test_what_was_never_answered_stays_unknown(self, ledger, plan):
        ledger.commit(begun=[[WITHOUT]])
        result = plan(WITHOUT)
        assert (result.outcome, "never answered" in result.reason) == (Outcome.UNKNOWN, True)
        assert plan(WITHOUT, retry_unknown=True) == WITHOUT

    def test_a_request_with_a_selector_is_repeated_with_it(self, ledger, plan):
        ledger.commit(begun=[[DomainSpec("example.com", "s9")]])
        assert plan(WITHOUT) == WITHOUT._replace(selector="s9")

    def test_only_the_entry_that_was_sent_is_in_doubt(self, ledger):
        ledger.commit(begun=[[DomainSpec("example.com", "s9")]])
        planner = Planner(ledger, now=NOW)
        assert planner.is_in_doubt(DomainSpec("Example.com", "S9"))
        assert not planner.is_in_doubt(DomainSpec("example.com", "s1"))
        assert not planner.is_in_doubt(WITHOUT)

    def test_a_quarantined_ledger_may_have_it(self, ledger, plan, tmp_path):
        (tmp_path / "ledger.db.damaged-20261120T000000").write_bytes(b"")
        result = plan(WITHOUT)
        assert result.outcome is Outcome.UNKNOWN
        assert "ledger.db.damaged-20261120T000000 may have it" in result.reason
        assert plan(DomainSpec("example.com", "s1")) == DomainSpec("example.com", "s1")
