"""Which answers the ledger keeps."""

from __future__ import annotations

import pytest

from dkimctl.models import DomainSpec, Outcome, Result
from dkimctl.registration.batches import BatchEntry
from dkimctl.registration.engine import persist


@pytest.fixture
def known_after(ledger, make_registration):
    """What the ledger has of example.com after an answer, beside the sound key s1."""

    def known_after(registration, outcome):
        ledger.record([make_registration()])
        entry = BatchEntry(DomainSpec(registration.sign_domain, registration.selector))
        persist(ledger, [(entry, Result(registration, outcome))], [])
        return [one.selector for one in ledger.of_domain("example.com")]

    return known_after


@pytest.mark.parametrize("outcome", [Outcome.UNUSABLE, Outcome.TAKEN])
def test_an_answer_without_a_usable_record_is_kept_beside_those_of_other_selectors(
    known_after, make_registration, outcome
):
    answer = make_registration(selector="s2", record=None)
    assert known_after(answer, outcome) == ["s1", "s2"]


@pytest.mark.parametrize("selector", ["S1", None])
def test_it_never_stands_for_a_key_that_has_one(known_after, make_registration, ledger, selector):
    """One that names no selector would count as the newest key of its domain."""
    answer = make_registration()._replace(selector=selector, record=None, key_len=None)
    assert known_after(answer, Outcome.UNUSABLE) == ["s1"]
    assert ledger.of_domain("example.com") == [make_registration()]


@pytest.mark.parametrize("outcome", [Outcome.INVALID, Outcome.FAILED, Outcome.UNKNOWN])
def test_an_entry_without_a_registration_is_not_kept(known_after, make_registration, outcome):
    assert known_after(make_registration(selector="s2"), outcome) == ["s1"]
