"""What the ledger keeps of a look at DNS."""

from __future__ import annotations

import pytest

from dkimctl.publication import Check, Finding, Verdict
from dkimctl.sightings import Sightings

PAIR = ("example.com", "s1")
OTHERS = [one for one in Verdict if one not in (Verdict.PUBLISHED, Verdict.NO_ANSWER)]


def see(verdict: Verdict, known, sign_domain="Example.COM", selector="S1") -> Sightings:
    sightings = Sightings(known)
    fqdn = f"{selector}._domainkey.{sign_domain}"
    sightings.see(Check(sign_domain, selector, fqdn, None, None, Finding(verdict)))
    return sightings


def test_what_is_published_is_seen_once():
    first = see(Verdict.PUBLISHED, {})
    assert (first.published, first.gone, first.is_new) == ([PAIR], [], True)
    assert not see(Verdict.PUBLISHED, {PAIR: "a date"}).is_new


@pytest.mark.parametrize("verdict", OTHERS)
def test_what_is_not_any_more_is_gone(verdict):
    later = see(verdict, {PAIR})
    assert (later.published, later.gone, later.is_new) == ([], [PAIR], True)
    assert not see(verdict, {("example.com", "s2")}).is_new


@pytest.mark.parametrize("known", [set(), {PAIR}])
def test_where_dns_does_not_tell_all_stays_as_it_was(known):
    assert not see(Verdict.NO_ANSWER, known).is_new


def test_nothing_seen_is_nothing_new():
    assert not Sightings({PAIR}).is_new
