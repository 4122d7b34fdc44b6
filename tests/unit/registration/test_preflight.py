"""What is sent for an entry, refused, and warned of, before anything is sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dkimctl.errors import UsageError
from dkimctl.models import DomainSpec, Outcome
from dkimctl.registration.preflight import Planner, inspect_entries
from dkimctl.specs.spec_file import read_specs
from spec_files import load_specs

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


ROOT = Path(__file__).parents[3]


def load(text: str, **options) -> list[DomainSpec]:
    return load_specs(text.encode(), "f.yaml", **options)


@pytest.mark.interface("2.3", "key_len-default", "start_date-default")
def test_short_keys_and_signing_at_once_give_one_warning_each(ledger):
    specs = load(
        "- a.example\n- {sign_domain: b.example, key_len: 1024, enable: false}\n"
        "- {sign_domain: c.example, start_date: 2027-07-01T00:00Z}\n- d.example\n"
        "- {sign_domain: e.example, key_len: 2048, enable: true}\n"
        "- {sign_domain: f.example, key_len: 2048, start_date: 2026-11-20T00:00Z}\n"
    )
    short, at_once = inspect_entries(specs, Planner(ledger), NOW)
    assert short == (
        "1024-bit keys for 4 domains (a.example, b.example, c.example, …): "
        "write key_len: 2048 (RFC 8301)"
    )
    assert "4 domains (a.example, d.example, e.example, …)" in at_once


def test_start_too_soon_for_dns_gives_a_warning(ledger):
    starts = [NOW + timedelta(minutes=minutes) for minutes in (-1, 59, 61)]
    specs = [
        DomainSpec(f"d{number}.example", key_len=2048, start_date=start.isoformat())
        for number, start in enumerate(starts)
    ]
    at_once, soon = inspect_entries(specs, Planner(ledger), NOW)
    assert "1 domain (d0.example)" in at_once
    assert "within the hour for 1 domain (d1.example)" in soon
    assert "check-dns" in soon


def test_example_file_shows_the_forms_and_gives_no_warning(ledger):
    specs = read_specs(str(ROOT / "domains.example.yaml"))
    assert [spec.sign_domain for spec in specs] == [
        "example.com",
        "mail.example.com",
        "news.example.com",
    ]
    assert inspect_entries(specs, Planner(ledger), NOW) == []


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

    def test_a_registration_without_selector_is_never_asked_for_again(
        self, ledger, plan, make_registration
    ):
        """The service would take it for another one, and register the domain twice."""
        ledger.record([make_registration()._replace(selector=None)])
        result = plan(WITHOUT, refresh=True)
        assert result.outcome is Outcome.UNUSABLE


class TestWithoutSelector:
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
