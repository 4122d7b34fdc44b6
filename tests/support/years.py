"""Years in the life of an operator who has `dkimctl rotate run` in a timer."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from commands import Done
from dkimctl.settings.rotation import RotationSettings
from judging import Judge, Run
from machines import OWN, Domains, Machines, MovingClock, Seen, starting

BEGIN = datetime(2027, 1, 1, tzinfo=UTC)
POLICY = RotationSettings()  # the defaults
OUTAGE = timedelta(days=3)
_BETWEEN_OUTAGES = timedelta(days=35)
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_OLDEST = timedelta(days=168)  # the age of the first keys
_AT_ONCE = 20  # new letters a day
# A process of its own kills the command, so that it dies wherever it is.
_KILL = """
import os, signal, threading
command = os.getpid()
if not os.fork():
    os.close(1)
    threading.Event().wait({seconds})
    if os.getppid() == command:
        os.kill(command, signal.SIGKILL)
    os._exit(0)
"""
_KILLED = -9
_JUMPS, _LONGEST_JUMP = 1 / 50, timedelta(days=40)
_KILLS = 0.6  # of the runs; some of these end before, so that about half are killed
_SHORTER = 0.8  # what the time that runs take shrinks by, if they have become shorter


class Years:
    """Time that passes for the domains. With a seed, what goes wrong happens by chance.

    With `jumps`, the clock of a run is wrong by up to 40 days, one day in fifty.
    """

    def __init__(
        self, machines: Machines, clock: MovingClock, seed: int, *, kills: bool, outages: bool,
        jumps: bool,
    ) -> None:  # fmt: skip
        self.machines = machines
        self.judge = Judge(machines.store, POLICY, max(1, len(machines.domains.names) // _AT_ONCE))
        self.notices: list[tuple[datetime, Any]] = []  # when, and the document
        self.outages: list[datetime] = []  # when they began
        self.now = BEGIN
        self._clock = clock
        self._random = Random(seed)
        self.kills = kills
        self._has_outages = outages
        self._jumps = jumps
        # That a run takes, by whether it has work to do, and whether the primary server runs.
        self._seconds: dict[tuple[bool, bool], float] = {}
        self._alarms: set[tuple[str, str]] = set()  # that were told, and are not over
        self._seen: Seen | None = None  # by the last look of `until`
        self.troubled: set[str] = set()  # domains of which runs have to tell

    def begin(self) -> None:
        """Register and publish a first key of each domain; these keys differ in age."""
        self.machines.domains.prepare(self.machines)
        names, _, size, step, selector, *_ = self.machines.domains
        for number in range(0, len(names), size):
            made = BEGIN - _OLDEST + step * (number // size)
            self._clock.move(made)
            fields = f"start_date: {(made + _DAY).isoformat(timespec='minutes')}"
            fields += f", selector: {selector}" if selector else ""
            group = names[number : number + size]
            entries = [f"- {{sign_domain: {name}, {fields}}}\n" for name in group]
            done = self.machines.dkimctl("register", "-", stdin="".join(entries))
            assert done.status == 0, done
        self._clock.move(self.now)
        done = self.machines.dkimctl("publish", "--yes")
        assert done.status == 0, done
        self.look()

    def live(self, runs: int, days: int = 1) -> Done:
        """Time passes, with a run each day, or after so many days; gives the last one."""
        for _ in range(runs):
            self.until(self.now.replace(hour=6) + _DAY * days)
            is_wrong = self._jumps and self._random.random() < _JUMPS
            ahead = self._random.uniform(-1, 1) * _LONGEST_JUMP if is_wrong else timedelta()
            done = self.run(ahead)
            if self._has_outages:
                self._begin_or_end_outage()
        return done

    def until(self, then: datetime) -> None:
        """Let time pass until the next change; each domain sends a letter meanwhile.

        Nothing changes DNS or the ledger between two looks (which `unchanged` checks), so what the
        last look saw is what is there at any time.
        """
        length = then - self.now
        for moment in self.judge.times(self.now, then):
            self.judge.check(moment)
        for domain in self.machines.domains.names:
            self.judge.send(self.now + self._random.random() * length, domain)
        self._clock.move(then)
        self.now = then
        seen = self.machines.look(self.judge.names(), self.judge.mail_names(then))
        self.judge.unchanged(then, seen)
        self.judge.look(then, seen)
        self._seen = seen

    def run(self, ahead: timedelta = timedelta()) -> Done:
        """Do what is due, or die meanwhile, by a clock that may be `ahead` of all others."""
        is_due, kill = self.judge.is_due(self.now), ""
        kind = is_due, self.machines.primary_runs
        longest = self._seconds.get(kind, 1.0)
        if self.kills and self._random.random() < _KILLS:
            kill = _KILL.format(seconds=self._random.uniform(0, longest))
        began = time.monotonic()
        self.machines.ahead = ahead
        done = self.machines.dkimctl("rotate", "run", "--wait", "5s", at_start=kill)
        self.machines.ahead = timedelta()
        seconds = time.monotonic() - began
        killed, without_dns = done.status == _KILLED, not self.machines.primary_runs
        run = Run(self.now, is_due, killed, without_dns, seconds, abs(ahead) > _HOUR)
        if killed:
            time.sleep(0.2)  # what it has sent may still be on its way
        else:
            self._seconds[kind] = max(seconds, longest * _SHORTER)
        self._judge_run(run, done)
        self.look()
        return done

    def look(self) -> None:
        """See what has changed."""
        names, of_mail = self.judge.names(), self.judge.mail_names(self.now)
        self.judge.look(self.now, self.machines.look(names, of_mail, self._seen))

    def _judge_run(self, run: Run, done: Done) -> None:
        """It succeeds; and there are alarms from the first run of an outage until its end."""
        self.judge.runs.append(run)
        for text in self.machines.take_notices():
            document = json.loads(text)
            self.notices.append((run.time, document))
            self._alarms |= _alarms(document["new"])
            self._alarms -= _alarms(document["over"])
        if run.killed:
            return
        if run.jumped:
            if done.status != 1 or "this machine's clock says" not in done.err:
                self.judge.report(run.time, f"a wrong clock: {done.status}: {done.err}")
            return
        if not run.without_dns and done.status != bool(self.troubled):
            self.judge.report(run.time, f"rotate run ended with {done.status}: {done.err}")
        if run.without_dns and not self._alarms:
            self.judge.report(run.time, "the primary is down, and there is no alarm")
        words = {word for subject, _ in self._alarms for word in subject.split()}
        alarmed = words.intersection(self.machines.domains.names)
        if not run.without_dns and (alarmed != self.troubled or bool(alarmed) != bool(words)):
            self.judge.report(run.time, f"there are alarms: {sorted(self._alarms)}")

    def _begin_or_end_outage(self) -> None:
        """An hour after a run. The primary goes down where the next run has work to do."""
        then = self.now + _HOUR
        length = then - self.outages[-1] if self.outages else _BETWEEN_OUTAGES
        if not self.machines.primary_runs and length >= OUTAGE:
            self.until(then)
            self.machines.start_primary()
            self.look()
        elif length >= _BETWEEN_OUTAGES and self.judge.is_due(then + _DAY):
            self.until(then)
            self.machines.stop_primary()
            self.outages.append(then)
            self.look()


def _alarms(problems: Iterable[Any]) -> set[tuple[str, str]]:
    return {(one, problem["problem"]) for problem in problems for one in problem["subjects"]}


@contextlib.contextmanager
def living(
    directory: Path,
    need: Callable[[str], str],
    seed: int,
    domains: Domains = OWN,
    *,
    kills=False,
    outages=False,
    jumps=False,
) -> Iterator[Years]:
    """The machines run, and each domain has a key, on New Year's Day of 2027.

    With `jumps`, updates of DNS are not signed: a server would refuse those of another time.
    """
    need("nsupdate")
    clock = MovingClock(directory / "clock", need)
    clock.move(BEGIN - _OLDEST)
    with starting(directory, clock, need, domains, signed_updates=not jumps) as machines:
        years = Years(machines, clock, seed, kills=kills, outages=outages, jumps=jumps)
        years.begin()
        yield years
