"""Warnings about results that need attention."""

from __future__ import annotations

import json

import pytest

from dkimctl.cli.output.results import AttentionWarnings
from dkimctl.cli.output.streams import Reporter
from dkimctl.models.registration import Outcome, Registration, Result


@pytest.fixture
def warnings_of(capsys):
    """What is written about these reasons of results, by outcome."""

    def write(*results: tuple[Outcome, str], reporter: Reporter | None = None) -> list[str]:
        reporter = reporter or Reporter()
        warnings = AttentionWarnings(reporter)
        for number, (outcome, reason) in enumerate(results):
            domain = f"d{number}.example"
            warnings.add(Result(Registration(domain, "s1"), outcome, reason.format(domain)))
        warnings.close()
        reporter.close()
        return capsys.readouterr().err.splitlines()

    return write


def test_one_result_has_a_warning_of_its_own(warnings_of):
    assert warnings_of((Outcome.TAKEN, "it is another's"), (Outcome.EXISTS, "")) == [
        "dkimctl: warning: d0.example (selector s1): taken: it is another's",
        "hint: choose another selector, or ask the service's operator who owns it",
    ]


def test_results_with_the_same_reason_share_one(warnings_of):
    results = [(Outcome.FAILED, "500"), (Outcome.TAKEN, "it is another's"), (Outcome.FAILED, "500")]
    first, hint, second, _ = warnings_of(*results)
    assert first == (
        "dkimctl: warning: failed: 500: 2 (d0.example (selector s1), d2.example (selector s1))"
    )
    assert hint == "hint: run the same command again later"
    assert second == "dkimctl: warning: d1.example (selector s1): taken: it is another's"


def test_twenty_names_are_listed_and_the_rest_counted(warnings_of):
    first, _ = warnings_of(*[(Outcome.FAILED, "500")] * 20_000)
    assert first.startswith("dkimctl: warning: failed: 500: 20,000 (d0.example (selector s1), ")
    assert first.endswith(", d19.example (selector s1), … and 19,980 more)")


def test_the_name_of_the_domain_makes_no_difference(warnings_of):
    first, _ = warnings_of(*[(Outcome.INVALID, "{} is refused")] * 2)
    assert first.startswith("dkimctl: warning: invalid: DOMAIN is refused: 2 (d0.example")
    first, _ = warnings_of((Outcome.INVALID, "{} is refused"))
    assert first.endswith("invalid: d0.example is refused")


def test_of_many_reasons_twenty_are_given_and_one_hint(warnings_of):
    lines = warnings_of(*[(Outcome.INVALID, f"reason {n}") for n in range(50)])
    assert len(lines) == 20 + 1 + 1
    assert sum(line.startswith("hint:") for line in lines) == 1
    assert lines[-1] == (
        "dkimctl: warning: invalid: 30 more, for other reasons (--verbose lists all)"
    )


def test_verbose_lists_all(warnings_of):
    lines = warnings_of(*[(Outcome.FAILED, "500")] * 50, reporter=Reporter(verbose=True))
    assert len(lines) == 50 + 1
    assert lines[-1] == "dkimctl: warning: d49.example (selector s1): failed: 500"


def test_json_has_all(warnings_of):
    [line] = warnings_of(*[(Outcome.FAILED, "500")] * 50, reporter=Reporter(as_json=True))
    warnings = json.loads(line)["warnings"]
    assert len(warnings) == 50
    assert warnings[49] == {
        "code": "failed", "message": "d49.example (selector s1): failed: 500", "hint": "",
    }  # fmt: skip
