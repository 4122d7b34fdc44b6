"""Two years of 20 domains with `dkimctl rotate run` once a day, and what became of their mail.

Run: python tests/bench/two_years.py [--days 730] [--kill] [--outage] [--jump] [--seed 1]
or:  python tests/bench/two_years.py --customers 500 [--days 730] [--kill] [--seed 1]

All is real but the date: name servers, a resolver, `dkimctl serve`, and mail that is signed with
the service's keys and verified by dkimpy. With --kill, about half of the runs are killed at a
random moment; with --outage, the primary name server is down for three days each time that there
is work to do, at most every five weeks; with --jump, the clock of a run is wrong by up to 40 days,
one day in fifty. With --customers, the domains are those of customers, who delegate selectors to a
zone of the operator, once; their own zones must not change. Needs what the slow tests need (see
CONTRIBUTING.md), and takes about two seconds a day. Exit 1 if a message was lost, or anything else
was wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from customers import Customers
from judging import LATEST, Run
from machines import OWN
from needs import extend_path, program
from years import Years, living


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=730)
    parser.add_argument("--kill", action="store_true", help="kill about half of the runs")
    parser.add_argument("--outage", action="store_true", help="stop the primary for three days")
    parser.add_argument("--jump", action="store_true", help="have a wrong clock now and then")
    parser.add_argument("--customers", type=int, help="have so many domains that are delegated")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    extend_path()
    if options.customers and options.outage:
        parser.error("the customers' keys are at one server, so an outage would lose mail")
    customers = Customers(options.customers, (3, 3), groups=25) if options.customers else None
    began = time.monotonic()
    with (
        TemporaryDirectory() as directory,
        living(
            Path(directory),
            program,
            options.seed,
            customers.domains if customers else OWN,
            kills=options.kill,
            outages=options.outage,
            jumps=options.jump,
        ) as years,
    ):
        for done in range(0, options.days, 30):
            days = min(30, options.days - done)
            if customers:
                customers.live(years, days)
            else:
                years.live(days)
            seconds = time.monotonic() - began
            state = f"{years.now:%F}: {len(years.judge.problems)} problems, {seconds:.0f} s"
            print(state, file=sys.stderr, flush=True)
        if customers:
            customers.judge(years)
        _report(years)
    if years.judge.problems:
        for what, when in years.judge.problems.items():
            print(f"{when:%F %H:%M}: {what}")
        _explain(years.judge.runs, min(years.judge.problems.values()))
        sys.exit(1)


def _report(years: Years) -> None:
    figures, runs = years.judge.figures, years.judge.runs
    killed = [run for run in runs if run.killed]
    print(f"{len(years.machines.domains.names)} domains until {years.now:%F}")
    print(f"  {len(runs)} runs, {sum(run.is_due for run in runs)} with something to do")
    print(f"  {len(killed)} killed, {sum(run.is_due for run in killed)} with something to do")
    print(f"  {sum(run.jumped for run in runs)} with a wrong clock")
    print(f"  {len(years.outages)} outages of the primary, {len(years.notices)} notices:")
    for when, document in years.notices:
        print(f"    {when:%F %H:%M} {document['text']}")
    print(f"  {figures.replaced} keys replaced and removed; the oldest signed at {figures.oldest}")
    print(f"  {figures.checks} times at which the key of a domain was at all servers that ran")
    print(
        f"  {figures.sent} messages, verified {figures.verified} times until {LATEST.days} days "
        f"old: {figures.lost} lost"
    )


def _explain(runs: Sequence[Run], when: datetime) -> None:
    """The runs before the first problem."""
    for run in runs:
        if timedelta() <= when - run.time <= timedelta(days=14):
            words = "due " * run.is_due + "killed " * run.killed + "no primary" * run.without_dns
            words += " wrong clock" * run.jumped
            print(f"  run of {run.time:%F %H:%M}: {run.seconds:.1f} s {words}")


if __name__ == "__main__":
    main()
