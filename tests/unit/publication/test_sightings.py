"""What the ledger keeps of a look at DNS."""

from __future__ import annotations

import pytest

from dkimctl.models.registration import key_of
from dkimctl.publication.sightings import PublicationChanges
from dkimctl.publication.verdicts import Check, Finding, Verdict

KEY = key_of("example.com", "s1")
OTHERS = [one for one in Verdict if one not in (Verdict.PUBLISHED, Verdict.NO_ANSWER)]


def check(verdict: Verdict, sign_domain="Example.COM", selector="S1") -> Check:
    fqdn = f"{selector}._domainkey.{sign_domain}"
    return Check(sign_domain, selector, fqdn, None, None, Finding(verdict))


def see(verdict: Verdict, known, sign_domain="Example.COM", selector="S1") -> PublicationChanges:
    sightings = PublicationChanges(known)
    sightings.see(check(verdict, sign_domain, selector))
    return sightings


def changes(sightings):
    return sightings.published + sightings.gone


def test_what_is_published_is_seen_once():
    first = see(Verdict.PUBLISHED, {})
    assert (first.published, first.gone) == ([KEY], [])
    assert not changes(see(Verdict.PUBLISHED, {KEY: "a date"}))


@pytest.mark.parametrize("verdict", OTHERS)
def test_what_is_not_any_more_is_gone(verdict):
    later = see(verdict, {KEY})
    assert (later.published, later.gone) == ([], [KEY])
    assert not changes(see(verdict, {key_of("example.com", "s2")}))


@pytest.mark.parametrize("known", [set(), {KEY}])
def test_where_dns_does_not_tell_all_stays_as_it_was(known):
    assert not changes(see(Verdict.NO_ANSWER, known))


def test_nothing_seen_is_nothing_new():
    assert not changes(PublicationChanges({KEY}))


@pytest.mark.parametrize("verdict", [Verdict.PUBLISHED, Verdict.MISSING])
def test_what_is_known_at_second_hand_changes_nothing(verdict):
    for known in ({KEY}, set()):
        sightings = PublicationChanges(known)
        sightings.see(check(verdict)._replace(is_first_hand=False))
        assert not changes(sightings)


def test_of_two_looks_the_later_counts():
    sightings = PublicationChanges(set())
    for verdict in (Verdict.PUBLISHED, Verdict.MISSING):
        sightings.see(check(verdict))
    assert not changes(sightings)
    sightings.see(check(Verdict.PUBLISHED))
    assert sightings.published == [KEY]
