"""Months with `dkimctl rotate run` in a timer: no mail is lost, whatever happens.

The domains are the operator's, or those of customers who delegate what their keys need, once.

tests/bench/two_years.py does the same for as long as you like.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from customers import Customers
from machines import DOMAINS
from years import POLICY, Years, living

MONTH, QUARTER = 31, 92  # days
_DAY = timedelta(days=1)


@pytest.fixture
def lived(tmp_path, needs_tool):
    """Live for some days, with what goes wrong."""

    def live(days: int, **troubles: bool):
        with living(tmp_path, needs_tool, seed=1, **troubles) as years:
            years.live(days)
            assert years.judge.problems == {}
            return years

    return live


@pytest.mark.nightly
def test_a_month(lived):
    years = lived(MONTH)
    figures = years.judge.figures
    assert figures.replaced >= 2
    assert figures.sent == MONTH * len(DOMAINS)
    assert figures.verified > figures.sent
    assert timedelta() <= POLICY.max_age - figures.oldest < timedelta(hours=1)
    assert years.notices == []


@pytest.mark.nightly
def test_a_quarter_of_kills_and_outages(lived):
    years = lived(QUARTER, kills=True, outages=True)
    assert years.judge.figures.replaced >= 8
    assert sum(run.killed for run in years.judge.runs) > QUARTER / 6
    assert len(years.outages) == 3
    assert len(years.notices) >= 2, "an outage in which each run is killed is told to nobody"


@pytest.mark.nightly
def test_a_quarter_of_kills_and_outages_and_wrong_clocks(lived):
    years = lived(QUARTER, kills=True, outages=True, jumps=True)
    assert years.judge.figures.replaced >= 6
    assert any(run.jumped and not run.killed for run in years.judge.runs)


@pytest.mark.nightly
def test_a_quarter_of_fifty_customers_and_kills(tmp_path, needs_tool):
    customers = Customers(50, (2, 1), groups=25)
    with living(tmp_path, needs_tool, 1, customers.domains, kills=True) as years:
        customers.live(years, QUARTER)
        customers.judge(years)
        assert years.judge.problems == {}
        assert years.judge.figures.replaced > 15
        assert sum(run.killed for run in years.judge.runs) > QUARTER / 6


def test_the_keys_of_customers_follow_each_other_without_a_change_of_their_dns(
    tmp_path, needs_tool
):
    """All keys are due on the fifth day. LATE has no selector left then; SOON has one more."""
    customers = Customers(4, (2, 1), groups=1)
    with living(tmp_path, needs_tool, 1, customers.domains) as years:
        for days in (5, 2, 9, 1, 9):
            customers.live(years, 1, days)
        customers.judge(years)
        assert years.judge.problems == {}
        assert years.judge.figures.replaced == 3
        used = {name: len(years.judge.keys_of(name)) for name in customers.domains.names}
        assert used == dict.fromkeys(customers.domains.names, 2)


def test_a_wrong_clock_costs_no_key(tmp_path, needs_tool):
    """The first two domains get successors on the sixth day, which sign a week later."""
    with living(tmp_path, needs_tool, seed=1, jumps=True) as years:
        for days, ahead in [(5, -30), (1, 40), (10, 15)]:
            years.live(days)
            years.until(years.now + timedelta(hours=1))
            listing, seems_due = ("rotate", "--retired", "--no-check"), ahead > 0
            # After a look at DNS, the grace period begins again.
            tries = (listing, seems_due), (("handoff", "--retired"), seems_due), (listing, False)
            for words, is_refused in tries:
                years.machines.ahead = ahead * _DAY
                done = years.machines.dkimctl(*words)
                assert "first" not in done.out
                assert (done.status, "the service's" in done.err) == (is_refused, is_refused)
            done = years.run(ahead * _DAY)
            wrong = f"{years.now + ahead * _DAY:%Y-%m-%d %H:%M} UTC"
            for time in (wrong, f"the service's {years.now:%Y-%m-%d %H:%M} UTC"):
                assert time in done.err
        assert years.judge.problems == {}
        assert years.judge.figures.verified > 0


def test_what_the_judge_sees(tmp_path, needs_tool):
    """Each domain has another trouble; the first three have keys of 168 and 153 days."""
    with living(tmp_path, needs_tool, seed=1) as years:
        years.until(years.now + _DAY)
        _succeed(years, "d00.test")
        years.machines.update(years.machines.dkimctl("show-dns", "--format", "nsupdate").out)
        years.look()
        for _ in range(10):
            years.until(years.now + _DAY)
        assert years.judge.problems == {}
        _succeed(years, "d02.test")
        years.machines.update("update delete first._domainkey.d03.test. TXT\nsend\n")
        years.look()
        for _ in range(7):
            years.until(years.now + _DAY)
        problems = years.judge.problems
    first, second = "first._domainkey.{}", "second._domainkey.{}"
    lost = {problem.rpartition(" ")[2] for problem in problems if problem.startswith("lost: ")}
    assert lost == {second.format("d02.test"), first.format("d03.test")}
    assert {problem for problem in problems if not problem.startswith("lost: ")} == {
        f"{first.format('d00.test')} is still there: 127.0.0.2, 127.0.0.3, 127.0.0.4, ledger",
        f"{first.format('d01.test')} signs for too long",
        f"{second.format('d02.test')} signs, and is not at all servers",
        f"{second.format('d02.test')} is not at all servers, but it signs, or did recently",
        f"{first.format('d03.test')} signs, and is not at all servers",
        f"{first.format('d03.test')} is not at all servers, but it signs, or did recently",
    }


def _succeed(years: Years, domain: str) -> None:
    """Register a successor that starts tomorrow."""
    words = ("--older-than", "100d", "--start-in", "1d", "--selector", "second")
    specs = years.machines.dkimctl("rotate", domain, *words).out
    assert years.machines.dkimctl("register", "-", stdin=specs).status == 0
