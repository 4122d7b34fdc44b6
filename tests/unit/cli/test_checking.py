"""Checks as shown: on stdout, on stderr, and by the exit code."""

from __future__ import annotations

import json

import pytest

from dkimctl.cli.checking import CheckProgress, open_renderer, show_checks
from dkimctl.cli.report import Reporter
from dkimctl.dns.verdicts import Check, Finding, Urgency, Verdict
from dkimctl.formats.monitoring import NO_RUN
from dkimctl.formats.renderer import CheckFormat

PUBLISHED, MISSING, NO_ANSWER = Verdict.PUBLISHED, Verdict.MISSING, Verdict.NO_ANSWER


def check_of(verdict: Verdict, name: str = "example.com", urgency: Urgency = Urgency.NONE) -> Check:
    fqdn = f"s1._domainkey.{name}"
    return Check(name, "s1", fqdn, None, True, Finding(verdict), urgency=urgency)


@pytest.fixture
def show(capsys):
    """Show checks; gives the exit code, stdout and stderr."""

    def run(
        checks, fmt=CheckFormat.JSON, output=None, wanted=PUBLISHED, written=False, **reporting
    ):
        reporter = Reporter(**reporting)
        progress = CheckProgress(reporter, wanted)
        renderer = open_renderer(fmt, output, reporter, wanted, NO_RUN)
        code = show_checks(
            checks, renderer, output, reporter, wanted=wanted, progress=progress, selection=(),
            has_targets=False, has_timer=False, is_written=written,
        )  # fmt: skip
        reporter.close()
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("verdicts", "wanted", "expected"),
    [([], PUBLISHED, 0), ([MISSING], MISSING, 0), ([Verdict.REVOKED], MISSING, 1),
     ([PUBLISHED, Verdict.RETIRED], PUBLISHED, 0), ([MISSING, Verdict.RETIRED], MISSING, 0),
     ([PUBLISHED, NO_ANSWER], PUBLISHED, 4), ([MISSING, NO_ANSWER], PUBLISHED, 1),
     ([PUBLISHED, NO_ANSWER], MISSING, 1),
     *(([PUBLISHED, verdict], PUBLISHED, 1)
       for verdict in set(Verdict) - {PUBLISHED, Verdict.RETIRED, NO_ANSWER})],
)  # fmt: skip
def test_worst_verdict_is_the_exit_code(show, verdicts, wanted, expected):
    code, out, _ = show(map(check_of, verdicts), wanted=wanted)
    assert code == expected
    assert json.loads(out)["count"] == len(verdicts)


def test_quiet_shows_what_is_wrong_alone(show):
    checks = [check_of(PUBLISHED), check_of(MISSING, "bad.example", Urgency.SIGNING)]
    code, out, err = show(checks, fmt=None, quiet=True)
    assert (code, len(out.splitlines())) == (1, 2)
    assert "bad.example" in out
    assert err.startswith("dkimctl: warning: URGENT: signing now without DNS")


def test_urgent_records_are_named(show):
    _, _, err = show([
        check_of(MISSING, "one.example", Urgency.SIGNING),
        check_of(PUBLISHED, "two.example"),
        check_of(Verdict.MISMATCH, "three.example", Urgency.SIGNING),
        check_of(MISSING, "four.example", Urgency.SOON),
        check_of(Verdict.INCONSISTENT, "five.example", Urgency.PARTLY),
    ])  # fmt: skip
    now, partly, soon = (line for line in err.splitlines() if "warning" in line)
    both = "2 (one.example (selector s1), three.example (selector s1))"
    assert f"signing now without DNS, so receivers cannot verify the mail: {both}" in now
    assert "cannot verify the mail: 1 (five.example (selector s1))" in partly
    assert "signing starts soon, but DNS is not ready: 1 (four.example (selector s1))" in soon
    assert "two.example" not in err


@pytest.mark.parametrize("urgency", [Urgency.NONE, Urgency.SIGNING, Urgency.SOON])
def test_what_was_just_published_is_not_to_be_published_again(show, urgency):
    _, _, err = show([check_of(MISSING, urgency=urgency)], written=True)
    assert "check that the servers of the zone get them from it" in err
    assert "show-dns" not in err
    assert "dkimctl publish" not in err


def test_file_that_cannot_be_written_is_exit_code_4_and_all_checks_are_counted(show, tmp_path):
    checks = map(check_of, (MISSING, PUBLISHED))
    code, _, err = show([check_of(PUBLISHED)], output=tmp_path / "nowhere" / "checks")
    assert (code, "error" in err) == (4, True)
    code, _, err = show(checks, output=tmp_path / "nowhere" / "checks")
    assert (code, "error" in err) == (1, True)
    assert "published 1, missing 1" in err


@pytest.mark.parametrize("verdict", ["differs", "mismatch", "truncated", "malformed", "duplicate"])
def test_what_to_do_about_a_record_that_is_not_as_registered(show, verdict):
    _, _, err = show([check_of(Verdict(verdict))])
    assert f"dkimctl: {verdict}: " in err
    assert "dkimctl: to publish what is wrong: `dkimctl show-dns --format nsupdate" in err
    assert "in a web panel: `dkimctl handoff`" in err
    assert show([check_of(Verdict(verdict))], wanted=MISSING)[2] == f"dkimctl: {verdict} 1\n"
