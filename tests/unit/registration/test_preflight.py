"""What is sent for an entry, refused, and warned of, before anything is sent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dkimctl.errors import UsageError
from dkimctl.models import DomainSpec, Outcome
from dkimctl.registration import outcomes
from dkimctl.registration.preflight import Planner, inspect_entries

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PAST, FUTURE = "2026-11-21T00:00+00:00", "2026-11-22T00:00+00:00"
SHORT = DomainSpec("example.com", "s1", start_date=FUTURE)
SUCCESSOR = DomainSpec("example.com", "s2", 2048, PAST, replaces="s1")


def said(ledger, *specs, **options) -> list[str]:
    dates = {"2026-11-20T00:00+00:00": "a.yaml:7"}
    warnings = inspect_entries(specs, Planner(ledger, now=NOW, **options), NOW, dates)
    return [text for text, _ in warnings]


@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize("selector", ["s1", "S1", None])
def test_warnings_are_about_new_entries(ledger, make_registration, selector, refresh):
    ledger.record([make_registration(sign_domain="Example.com")])
    assert said(ledger, SHORT._replace(selector=selector), refresh=refresh) == []
    [short] = said(ledger, SHORT._replace(selector="s9"), SHORT._replace(selector=selector))
    assert "1 domain (example.com)" in short


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
    def test_one_that_is_or_may_be_registered_passes(self, ledger, make_registration, refresh):
        ledger.commit(begun=[[SUCCESSOR]])
        [at_once] = said(ledger, SUCCESSOR)
        assert "so signing starts at registration" in at_once
        ledger.record([make_registration(selector="S2")])
        assert said(ledger, SUCCESSOR, refresh=refresh) == []


@pytest.mark.interface("2.3", "key_len-default", "start_date-default")
def test_short_keys_and_signing_too_soon_for_dns_give_one_warning_each(ledger):
    short, at_once, past, far, soon = said(
        ledger,
        DomainSpec("a.example"),
        DomainSpec("b.example", key_len=1024, enable=False),
        DomainSpec("c.example", start_date="2027-07-01T00:00+00:00"),
        DomainSpec("d.example"),
        DomainSpec("e.example", key_len=2048, enable=True),
        DomainSpec("f.example", key_len=2048, start_date="2026-11-20T00:00+00:00"),
        DomainSpec("g.example", key_len=2048, start_date="2026-11-21T00:59+00:00"),
        DomainSpec("h.example", key_len=2048, start_date="2026-11-21T01:01+00:00"),
        DomainSpec("i.example", key_len=2048, start_date="9999-11-21T01:01+00:00"),
        DomainSpec("j.example", key_len=2048, start_date=PAST),
    )
    assert short == (
        "1024-bit keys for 4 domains (a.example, b.example, c.example, …): "
        "write key_len: 2048 (RFC 8301)"
    )
    assert "3 domains (a.example, d.example, e.example)" in at_once
    assert past == (
        "a.yaml:7: start_date 2026-11-20T00:00+00:00 (and others) is in the past, so signing "
        "starts at registration, before DNS is published, for 2 domains (f.example, j.example): "
        "write a later one into these entries, or enable: false"
    )
    assert far.startswith("start_date 9999-11-21T01:01+00:00 is more than ten years ahead, for 1 ")
    assert "within the hour for 1 domain (g.example)" in soon


WITHOUT = DomainSpec("example.com", None, 2048, "2027-01-01T00:00+00:00")


@pytest.fixture
def plan(ledger):
    return lambda spec, **options: Planner(ledger, now=NOW, **options).plan_entry(spec)


def test_a_registration_without_selector_is_never_asked_for_again(ledger, plan, make_registration):
    """The service would take it for another one, and register the domain twice."""
    ledger.record([make_registration()._replace(selector=None)])
    assert plan(WITHOUT, refresh=True).outcome is Outcome.UNUSABLE


@pytest.mark.parametrize("refresh", [False, True])
def test_without_selector_a_length_and_a_start_are_those_of_the_first_key(
    ledger, plan, make_registration, refresh
):
    """The same file stays right while its keys are replaced."""

    def outcome(**stated):
        planned = plan(WITHOUT._replace(**stated), refresh=refresh)
        if isinstance(planned, DomainSpec):  # the service answers with what it has
            planned = outcomes.of_registered(planned, known)
        return str(planned.outcome)

    known = make_registration(start_date=PAST, enable=True)
    ledger.record([known])
    assert outcome() == outcome(start_date=PAST, key_len=1024) == "differs"
    assert outcome(start_date=PAST) == outcome(implied=("start_date",)) == "exists"
    assert outcome(start_date="2026-01-01T00:00+00:00") == "exists", "both have begun"
    ledger.record([make_registration(selector="s9", code="409", record=None)])
    assert outcome() == "differs", "the key of another account is none of the domain's"
    ledger.note_replacements({known.key: "s0"})
    assert (outcome(), outcome(enable=False)) == ("exists", "differs")
    known = make_registration(selector="s3", regist_date=PAST)
    ledger.record([known])
    assert outcome() == "exists"


def test_a_quarantined_ledger_may_have_it(ledger, plan, tmp_path):
    (tmp_path / "ledger.db.damaged-20261120T000000").write_bytes(b"")
    result = plan(WITHOUT)
    assert result.outcome is Outcome.UNKNOWN
    assert "ledger.db.damaged-20261120T000000 may have it" in result.reason
    assert plan(DomainSpec("example.com", "s1")) == DomainSpec("example.com", "s1")
