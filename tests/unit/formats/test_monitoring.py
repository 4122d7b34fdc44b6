"""Metrics and plugin lines, for many checks and for names that nobody should have."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from dkimctl.dns.verdicts import Check, Finding, Urgency, Verdict
from dkimctl.formats.monitoring import (
    MAX_NAMED,
    NagiosRenderer,
    NagiosState,
    PrometheusRenderer,
    Run,
    unknown_line,
)
from dkimctl.formats.renderer import render_all
from dkimctl.models import MailStats

RUN = Run("work", 100.0)


@pytest.fixture(autouse=True)
def _ended(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 103.5)


def check(name="example.com", verdict=Verdict.PUBLISHED, urgency=Urgency.NONE, **fields):
    selector = fields.pop("selector", "s1")
    fqdn = f"{selector}._domainkey.{name}"
    return Check(name, selector, fqdn, None, True, Finding(verdict), urgency=urgency, **fields)


def metrics(checks, run=RUN):
    renderer = PrometheusRenderer(Verdict.PUBLISHED, run)
    text = "".join(render_all(renderer, checks))
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def line(checks, wanted=Verdict.PUBLISHED, run=RUN):
    renderer = NagiosRenderer(wanted, run)
    return "".join(render_all(renderer, checks)), renderer.state


@given(st.text(), st.text(), st.text())
def test_names_of_any_kind_are_labels_that_a_parser_reads_back(name, selector, profile):
    found = metrics([check(name, Verdict.MISSING, selector=selector)], Run(profile, 0.0))
    [problem] = [sample for sample in found if sample.name == "dkimctl_key_problem"]
    names = {"profile", "sign_domain", "selector", "verdict", "urgency", "owner"}
    assert problem.labels.keys() == names
    assert all(text.isprintable() or "\u00a0" in text or "\u3000" in text
               for text in problem.labels.values())  # fmt: skip


@given(st.text(), st.text())
def test_a_plugin_line_is_one_line_with_one_bar(name, selector):
    text, state = line([check(name, Verdict.MISSING, selector=selector)])
    assert (text.count("\n"), text.count("|"), state) == (1, 1, NagiosState.WARNING)
    said = unknown_line(f"{name}\n|{selector}")
    assert (said.count("\n"), said.count("|"), len(said) < 2000) == (1, 0, True)


def test_the_number_of_names_is_bounded_and_the_urgent_come_first():
    many = [check(f"d{number}.example", Verdict.MISSING) for number in range(10_000)]
    urgent = check("urgent.example", Verdict.MISSING, Urgency.SIGNING)
    problems = [item for item in metrics([*many, urgent]) if item.name == "dkimctl_key_problem"]
    assert len(problems) == MAX_NAMED
    assert problems[0].labels["sign_domain"] == "urgent.example"
    text, state = line([*many, urgent])
    assert (len(text) < 500, state) == (True, NagiosState.CRITICAL)
    assert "and 9996 more" in text


def test_the_mail_of_at_most_100_keys_is_told_those_with_the_most_that_failed():
    checks = [check(f"d{number}.example") for number in range(200)]
    mail = {each.key: MailStats(1, number, date(2026, 11, 20))
            for number, each in enumerate(checks)}  # fmt: skip
    mail[checks[199].key] = mail[checks[199].key]._replace(is_reported=False)
    found = metrics(checks, Run("work", 100.0, mail=mail))
    names = {item.labels["sign_domain"] for item in found if item.name == "dkimctl_key_messages"}
    assert names == {f"d{number}.example" for number in range(99, 199)}
    passed = [item for item in found if item.name == "dkimctl_key_passed_timestamp_seconds"]
    assert {item.value for item in passed} == {1_795_132_800}
    assert len(passed) == MAX_NAMED


def test_the_oldest_key_is_one_that_may_sign():
    dates = {"a": "2026-01-01T00:00:00+00:00", "b": "2025-01-01T00:00:00+00:00"}
    checks = [
        check("a.example", regist_date=dates["a"]),
        check("old.example", Verdict.RETIRED, regist_date=dates["b"]),
        check("off.example", regist_date=dates["b"])._replace(enable=False),
        check("none.example"),
        check("odd.example", regist_date="yesterday"),
    ]
    values = {sample.name: sample.value for sample in metrics(checks)}
    assert values["dkimctl_oldest_key_timestamp_seconds"] == 1_767_225_600
    assert values["dkimctl_check_duration_seconds"] == 3.5
    assert not [sample for sample in metrics([check()]) if "oldest" in sample.name]


@pytest.mark.parametrize(
    ("checks", "state"),
    [
        ([check(), check(verdict=Verdict.RETIRED)], NagiosState.OK),
        ([check(), check(verdict=Verdict.DIFFERS)], NagiosState.WARNING),
        ([check(verdict=Verdict.NO_ANSWER)], NagiosState.UNKNOWN),
        ([check(verdict=Verdict.NO_ANSWER), check(verdict=Verdict.BOGUS)], NagiosState.WARNING),
        ([check(verdict=Verdict.MISSING, urgency=Urgency.SOON)], NagiosState.WARNING),
        ([check(verdict=Verdict.INCONSISTENT, urgency=Urgency.PARTLY)], NagiosState.WARNING),
        ([check(verdict=Verdict.MISSING, urgency=Urgency.SIGNING)], NagiosState.CRITICAL),
    ],
)
def test_states(checks, state):
    assert line(checks)[1] is state
