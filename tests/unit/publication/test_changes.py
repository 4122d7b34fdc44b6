"""What checks change about the publications in the ledger."""

from __future__ import annotations

import pytest

from dkimctl.models.registration import key_of
from dkimctl.publication.changes import PublicationChanges
from dkimctl.publication.verdicts import Check, Finding, Verdict

KEY = key_of("example.com", "s1")
FAULTS = [one for one in Verdict if one not in (Verdict.PUBLISHED, Verdict.NO_ANSWER)]


def make_check(verdict: Verdict) -> Check:
    fqdn = "S1._domainkey.Example.COM"
    return Check("Example.COM", "S1", fqdn, None, None, Finding(verdict))


def changes_by(verdict: Verdict, known) -> PublicationChanges:
    changes = PublicationChanges(known)
    changes.add(make_check(verdict))
    return changes


def keys_of(changes):
    return changes.published + changes.gone


def test_published_record_is_a_change_only_the_first_time():
    first = changes_by(Verdict.PUBLISHED, {})
    assert (first.published, first.gone) == ([KEY], [])
    assert not keys_of(changes_by(Verdict.PUBLISHED, {KEY: "a date"}))


@pytest.mark.parametrize("verdict", FAULTS)
def test_record_that_is_no_longer_published_is_gone(verdict):
    later = changes_by(verdict, {KEY})
    assert (later.published, later.gone) == ([], [KEY])
    assert not keys_of(changes_by(verdict, {key_of("example.com", "s2")}))


@pytest.mark.parametrize("known", [set(), {KEY}])
def test_no_answer_changes_nothing(known):
    assert not keys_of(changes_by(Verdict.NO_ANSWER, known))


def test_without_checks_there_are_no_changes():
    assert not keys_of(PublicationChanges({KEY}))


@pytest.mark.parametrize("verdict", [Verdict.PUBLISHED, Verdict.MISSING])
def test_second_hand_answer_changes_nothing(verdict):
    for known in ({KEY}, set()):
        changes = PublicationChanges(known)
        changes.add(make_check(verdict)._replace(is_first_hand=False))
        assert not keys_of(changes)


def test_last_check_of_a_record_counts():
    changes = PublicationChanges(set())
    for verdict in (Verdict.PUBLISHED, Verdict.MISSING):
        changes.add(make_check(verdict))
    assert not keys_of(changes)
    changes.add(make_check(Verdict.PUBLISHED))
    assert changes.published == [KEY]
