"""What is refused, and warned of, before anything is sent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dkimctl.errors import UsageError
from dkimctl.models import DomainSpec
from dkimctl.registration.preflight import Planner, inspect_entries

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PAST, FUTURE = "2026-11-21T00:00+00:00", "2026-11-22T00:00+00:00"
SHORT = DomainSpec("example.com", "s1", start_date=FUTURE)
SUCCESSOR = DomainSpec("example.com", "s2", 2048, PAST, replaces="s1")


def said(ledger, *specs, **options) -> list[str]:
    return inspect_entries(specs, Planner(ledger, now=NOW, **options), NOW)


class TestWarnings:
    """They are about what will be sent, and nothing else."""

    def test_an_entry_that_signs_at_once_is_refused_only_as_a_successor(self, ledger):
        [at_once] = said(ledger, SUCCESSOR._replace(replaces=None))
        assert at_once.startswith("signing starts at registration")

    @pytest.mark.parametrize("refresh", [False, True])
    @pytest.mark.parametrize("selector", ["s1", "S1", None])
    def test_a_registered_one_is_not(self, ledger, make_registration, selector, refresh):
        ledger.record([make_registration(sign_domain="Example.com")])
        assert said(ledger, SHORT._replace(selector=selector), refresh=refresh) == []
        [short] = said(ledger, SHORT._replace(selector="s9"), SHORT._replace(selector=selector))
        assert "1 domain (example.com)" in short

    def test_an_entry_that_stays_unknown_is_not_sent(self, ledger):
        spec = SHORT._replace(selector=None)
        ledger.commit(begun=[[spec]])
        assert said(ledger, spec) == []
        assert len(said(ledger, spec, retry_unknown=True)) == 1

    def test_what_belongs_to_another_account_stands_for_no_entry_without_selector(
        self, ledger, make_registration
    ):
        ledger.record([make_registration(code="409", record=None)])
        assert said(ledger, SHORT) == []
        assert len(said(ledger, SHORT._replace(selector=None))) == 1


class TestLateSuccessors:
    """A successor must be in DNS before it signs."""

    @pytest.mark.parametrize("start_date", [PAST, "2025-01-01T00:00+09:00", None])
    def test_without_a_start_in_the_future_it_is_refused(self, ledger, start_date):
        late = SUCCESSOR._replace(start_date=start_date)
        others = [DomainSpec(f"d{number}.example", "s2", 2048, PAST, replaces="s1")
                  for number in range(9)]  # fmt: skip
        with pytest.raises(UsageError) as caught:
            said(ledger, SHORT, late)
        assert caught.value.message.startswith("1 successor would sign at once")
        assert "example.com (selector s2); nothing was sent" in caught.value.message
        assert "dkimctl rotate > successors.yaml" in caught.value.hint
        with pytest.raises(UsageError, match=r"10 successors .*, …; nothing was sent"):
            said(ledger, late, *others)

    def test_with_a_start_in_the_future_or_disabled_it_passes(self, ledger):
        [soon] = said(ledger, SUCCESSOR._replace(start_date="2026-11-21T00:01+00:00"))
        assert "within the hour" in soon
        assert said(ledger, SUCCESSOR._replace(start_date=FUTURE)) == []
        assert said(ledger, SUCCESSOR._replace(enable=False)) == []

    @pytest.mark.parametrize("refresh", [False, True])
    def test_a_registered_one_passes(self, ledger, make_registration, refresh):
        ledger.record([make_registration(selector="S2")])
        assert said(ledger, SUCCESSOR, refresh=refresh) == []

    def test_one_whose_request_was_not_answered_passes(self, ledger):
        ledger.commit(begun=[[SUCCESSOR]])
        [at_once] = said(ledger, SUCCESSOR)
        assert "signing starts at registration" in at_once
