"""Verdicts by what is in DNS."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.verdicts import (
    Check,
    Finding,
    ServerFinding,
    Urgency,
    Verdict,
    combine_findings,
    urgency_of,
)

PUBLISHED, DIFFERS, MISMATCH = Verdict.PUBLISHED, Verdict.DIFFERS, Verdict.MISMATCH
MISSING, NO_ANSWER = Verdict.MISSING, Verdict.NO_ANSWER


def answered(*verdicts: Verdict | Finding) -> list[ServerFinding]:
    """Of servers a, b, c and so on."""
    findings = [one if isinstance(one, Finding) else Finding(one) for one in verdicts]
    return [ServerFinding(*one) for one in zip("abcdefgh", findings, strict=False)]


SILENT = Finding(NO_ANSWER, "it does not answer")
EACH = [*(Finding(verdict) for verdict in Verdict if verdict is not NO_ANSWER), SILENT]


@pytest.mark.parametrize("finding", [finding for finding in EACH if finding is not SILENT])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_servers_that_agree_have_one_finding(finding, number):
    assert combine_findings(answered(*[finding] * number)) == finding


@pytest.mark.parametrize("number", [1, 3])
def test_no_answer_from_any_server_names_each(number):
    finding = combine_findings(answered(*[SILENT] * number))
    assert finding.verdict is NO_ANSWER
    assert finding.reason.split("; ") == [f"{name}: it does not answer" for name in "abc"[:number]]


def test_published_only_if_every_server_answers_so():
    finding = combine_findings(answered(PUBLISHED, SILENT, PUBLISHED))
    assert finding == Finding(NO_ANSWER, "published elsewhere; b: it does not answer")
    assert combine_findings(answered(PUBLISHED, SILENT)) == finding


def test_servers_that_disagree_are_named():
    finding = combine_findings(answered(PUBLISHED, Verdict.MISSING, PUBLISHED, SILENT))
    assert finding.verdict is Verdict.INCONSISTENT
    assert finding.reason == "published at 2 of 4 servers; b: missing; d: no answer"


@pytest.mark.parametrize("other", [SILENT, Finding(MISSING)])
@pytest.mark.parametrize(("servers", "end"), [(1500, "; and 1480 more"), (21, "; and 1 more")])
def test_a_reason_names_at_most_20_servers(other, servers, end):
    right = [ServerFinding(f"right{number}", Finding(PUBLISHED)) for number in range(1501)]
    wrong = [ServerFinding(f"wrong{number}", other) for number in range(servers)]
    reason = combine_findings(right + wrong).reason
    assert reason.count("wrong") == 20
    assert reason.endswith(end)


@given(st.lists(st.sampled_from(EACH), min_size=1, max_size=5))
def test_published_if_and_only_if_all_servers_answer_so(findings):
    verdicts = {finding.verdict for finding in findings}
    verdict = combine_findings(answered(*findings)).verdict
    assert (verdict is PUBLISHED) == (verdicts == {PUBLISHED})
    assert (verdict is Verdict.INCONSISTENT) == (
        len(verdicts - {NO_ANSWER}) > 1 or verdicts - {NO_ANSWER} == {Verdict.INCONSISTENT}
    )


def test_all_reasons_for_one_verdict_are_given():
    servers = answered(
        Finding(MISMATCH, "it is another key (p=)"),
        Finding(MISMATCH, "other values of the tags t="),
    )
    for findings in itertools.permutations(servers):
        reason = combine_findings(findings).reason
        assert "p=" in reason
        assert "t=" in reason


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WITHIN = timedelta(days=2)


def check_of(verdict: Verdict = Verdict.MISSING, **changes) -> Check:
    fields = {"start_date": None, "enable": None, "finding": Finding(verdict)}
    return Check("example.com", "s1", "s1._domainkey.example.com", **{**fields, **changes})


@pytest.mark.parametrize(
    ("start_date", "expected"),
    [("2026-11-01T00:00+09:00", Urgency.SIGNING), ("2026-11-21T12:00+00:00", Urgency.SIGNING),
     ("2026-11-21T12:01+00:00", Urgency.SOON), ("2026-11-23T12:01+00:00", Urgency.NONE),
     ("2099-01-01T00:00+00:00", Urgency.NONE), (None, Urgency.SIGNING),
     ("2026-11-30T00:00", Urgency.SIGNING)],
)  # fmt: skip
@pytest.mark.parametrize("enable", [None, True])
def test_urgency_depends_on_the_start_of_signing(start_date, expected, enable):
    assert urgency_of(check_of(start_date=start_date, enable=enable), NOW, WITHIN) is expected


@pytest.mark.parametrize(
    ("registered", "expected"),
    [("2026-11-30T12:00:00+00:00", Urgency.SIGNING),
     ("2026-11-30T21:00:59+09:00", Urgency.SIGNING), ("2026-11-30T11:59:59+00:00", Urgency.NONE),
     ("2026-11-21T11:00:00+00:00", Urgency.NONE), ("soon", Urgency.NONE), (None, Urgency.NONE)],
)  # fmt: skip
def test_a_start_by_the_registration_has_begun_whatever_our_clock_says(registered, expected):
    check = check_of(start_date="2026-11-30T12:00+00:00", regist_date=registered)
    assert urgency_of(check, NOW, WITHIN) is expected


HARMLESS = (PUBLISHED, Verdict.RETIRED, DIFFERS, NO_ANSWER)


@pytest.mark.parametrize("verdict", [one for one in Verdict if one not in HARMLESS])
def test_every_fault_is_urgent(verdict):
    assert urgency_of(check_of(verdict), NOW, WITHIN) is Urgency.SIGNING


@pytest.mark.parametrize("check", [*map(check_of, HARMLESS), check_of(enable=False)])
def test_harmless_unknown_and_disabled_records_are_not_urgent(check):
    assert urgency_of(check, NOW, WITHIN) is Urgency.NONE


PARTLY, INCONSISTENT = Urgency.PARTLY, Finding(Verdict.INCONSISTENT, "it is an alias at one")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([PUBLISHED, PUBLISHED, MISSING], PARTLY), ([MISSING, MISSING, PUBLISHED], PARTLY),
     ([MISMATCH, DIFFERS], PARTLY), ([PUBLISHED, MISSING, SILENT], PARTLY),
     ([PUBLISHED, DIFFERS], Urgency.NONE), ([PUBLISHED, DIFFERS, SILENT], Urgency.NONE),
     ([MISSING, MISMATCH], Urgency.SIGNING), ([MISSING, MISMATCH, SILENT], Urgency.SIGNING),
     ([Verdict.DUPLICATE, Verdict.BOGUS], Urgency.SIGNING),
     ([INCONSISTENT, INCONSISTENT], Urgency.SIGNING), ([INCONSISTENT, PUBLISHED], PARTLY)],
)  # fmt: skip
def test_a_record_that_some_servers_have_is_less_urgent(verdicts, expected):
    finding = combine_findings(answered(*verdicts))
    assert urgency_of(check_of(finding=finding), NOW, WITHIN) is expected
    later = check_of(finding=finding, start_date="2026-11-22T12:00+00:00")
    assert urgency_of(later, NOW, WITHIN) is (Urgency.SOON if expected else Urgency.NONE)
    assert urgency_of(check_of(finding=finding, enable=False), NOW, WITHIN) is Urgency.NONE
