"""The problems that checks show."""

from __future__ import annotations

import pytest

from dkimctl.dns.verdicts import Check, Finding, Urgency, Verdict
from dkimctl.models.registration import key_of
from dkimctl.notices import is_key_subject, problem_of, subject_of


def check(verdict: Verdict, urgency: Urgency = Urgency.NONE, reason: str = "") -> Check:
    name = "s1._domainkey.example.com"
    return Check("Example.com", "S1", name, None, True, Finding(verdict, reason), urgency=urgency)


def test_the_subject_is_the_key_in_lower_case():
    assert problem_of(check(Verdict.MISSING)).subject == "example.com s1"
    assert subject_of(key_of("example.com", None)) == "example.com"


@pytest.mark.parametrize(
    ("subject", "is_key"),
    [("example.com s1", True), ("example.com", True), ("zone example.com", False),
     ("service", False), ("", False)],
)  # fmt: skip
def test_keys_are_told_from_other_subjects(subject, is_key):
    assert is_key_subject(subject) is is_key


@pytest.mark.parametrize(
    ("urgency", "problem"),
    [(Urgency.SIGNING, "signing now without DNS: missing"),
     (Urgency.SOON, "signing starts soon: missing"),
     (Urgency.NONE, "missing")],
)  # fmt: skip
def test_a_problem_that_becomes_urgent_is_another_problem(urgency, problem):
    assert problem_of(check(Verdict.MISSING, urgency)).problem == problem


def test_the_reason_is_a_detail():
    problem = problem_of(check(Verdict.MISMATCH, reason="192.0.2.1: another key"), "publish it")
    assert (problem.problem, problem.detail) == ("mismatch", "192.0.2.1: another key")
    assert problem.action == "publish it"


def test_without_an_answer_nothing_is_known():
    assert problem_of(check(Verdict.NO_ANSWER)).is_unknown
    assert not problem_of(check(Verdict.MISSING)).is_unknown
