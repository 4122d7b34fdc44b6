"""The problems that checks show."""

from __future__ import annotations

import pytest

from dkimctl.dns.verdicts import Check, Finding, Urgency, Verdict
from dkimctl.models import key_of
from dkimctl.notices import problem_of, subject_of


def check(verdict: Verdict, urgency: Urgency = Urgency.NONE, reason: str = "") -> Check:
    name = "s1._domainkey.example.com"
    return Check("Example.com", "S1", name, None, True, Finding(verdict, reason), urgency=urgency)


def test_the_subject_is_the_key_in_lower_case():
    assert problem_of(check(Verdict.MISSING)).subject == "example.com s1"
    assert subject_of(key_of("example.com", None)) == "example.com"


@pytest.mark.parametrize(
    ("urgency", "problem"),
    [(Urgency.SIGNING, "signing now without DNS: missing"),
     (Urgency.SOON, "signing starts soon: missing"),
     (Urgency.NONE, "missing")],
)  # fmt: skip
def test_a_problem_that_becomes_urgent_is_another_problem(urgency, problem):
    assert problem_of(check(Verdict.MISSING, urgency)).problem == problem
