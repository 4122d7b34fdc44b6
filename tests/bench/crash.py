"""Kill `dkimctl register` repeatedly at random moments, and check that nothing is lost.

Run: python tests/bench/crash.py [KILLS [DOMAINS [SEED [BATCH_SIZE]]]]

For each form of the file: 5,000 domains in batches of 5 (with larger ones, the work would not last
for all kills) at a service on loopback with faults, and 220 kills (SIGKILL), each followed at
once by the same command, then one complete run. Half of the moments are chosen evenly from the
start-up of a run, the others from the time after its first write to the ledger. Exit 1 if anything
was duplicated, lost or reported wrongly.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from audit import Audit, LedgerState, record_of
from load import arguments
from rehearsal import ASSIGNED, CHOSEN, EXPLICIT, Form, Run, Scene

START_UP, SENDING, END, IDLE = "at start-up", "while sending", "at the end", "with nothing to do"

_MORE = 0.1  # share of the kills: those beyond the given number, which may find nothing to do
_EARLY = 0.5  # share of the kills: those during start-up
_RATE = 250.0  # domains per second, at most
_ATTEMPTS = 10  # runs for one kill, if they end before it


class Crashes(NamedTuple):
    """The result of the kills."""

    moments: Counter[str]
    in_doubt: frozenset[str]  # domains whose intents were open before the last run
    unrecorded: list[str]  # domains that a killed run printed, but that are not in the ledger
    last: Run
    audit: Audit


def rehearse(
    home: Path, form: Form, *, kills: int, count: int, seed: int, batch_size: int
) -> Crashes:
    """Kill this many runs of `count` domains, complete one, and audit the result."""
    if form is CHOSEN:
        # Each kill leaves a batch in doubt for good: small ones leave work for every kill.
        batch_size = max(1, batch_size // 10)
    scene = Scene(home, form, count, seed, batch_size)
    with scene.served(seed=seed, slow=0.2, any=0.05):
        killer = _Killer(scene, kills, random.Random(seed))
        for _ in range(kills + round(kills * _MORE)):
            killer.kill()
        in_doubt = scene.ledger().in_doubt
        last = scene.register()
    return Crashes(killer.moments, in_doubt, killer.unrecorded, last, scene.audit(last))


class _Killer:
    """Kills one run after another."""

    def __init__(self, scene: Scene, kills: int, rng: random.Random) -> None:
        self.moments: Counter[str] = Counter()
        self.unrecorded: list[str] = []
        self._scene = scene
        self._rng = rng
        self._ledger = scene.ledger()
        self._start_up = scene.register("--dry-run").seconds  # of the quickest run
        # On average of sending for each kill in that phase, such that the work lasts.
        self._sending = len(scene.domains) / _RATE / (kills * (1 - _EARLY))

    def kill(self) -> None:
        """Kill one run at a random moment; a run that ends before does not count."""
        for _ in range(_ATTEMPTS):
            started = time.perf_counter()
            is_killed = self._kill_run()
            seconds = time.perf_counter() - started
            before, self._ledger = self._ledger, self._scene.ledger()
            if not is_killed:
                self._start_up = min(self._start_up, seconds)
                continue
            # Judged from what the run has changed:
            if not self._left(before):
                moment = IDLE
            elif self._ledger == before:
                moment = START_UP
            else:
                moment = SENDING if self._left(self._ledger) else END
            self.moments[moment] += 1
            printed = filter(None, map(record_of, self._scene.printed()))
            self.unrecorded += [key[0] for key in printed if key not in self._ledger.records]
            return
        raise AssertionError(f"{_ATTEMPTS} runs ended before they were killed")

    def _kill_run(self) -> bool:
        """Kill one run at a random moment; returns whether it was still running."""
        written = self._scene.last_write()
        process = self._scene.start()
        if not self._left(self._ledger) or self._rng.random() < _EARLY:
            seconds = self._rng.uniform(0, self._start_up)
        else:
            while self._scene.last_write() == written and process.poll() is None:
                time.sleep(0.002)
            seconds = self._rng.uniform(0, 2 * self._sending)
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(seconds)
            assert status in (0, 4), f"exit {status}: {self._scene.said()}"
            return False
        process.kill()
        process.wait()
        return True

    def _left(self, ledger: LedgerState) -> int:
        """The number of domains that are still to be sent."""
        done = ledger.domains()
        if self._scene.form is CHOSEN:
            done |= ledger.in_doubt
        return len(self._scene.domains) - len(done)


def problems(form: Form, crashes: Crashes) -> list[str]:
    """Describe every error."""
    audit, last = crashes.audit, crashes.last
    problems = list(audit.problems)
    expected = {"created", "exists"}
    if form is CHOSEN:
        expected.add("unknown")
        if gone := crashes.in_doubt.difference(audit.unknown):
            problems.append(f"in doubt, but not unknown in the last run: {sorted(gone)}")
    if crashes.unrecorded:
        problems.append(f"printed, but not in the ledger: {crashes.unrecorded}")
    if not audit.outcomes.keys() <= expected or last.status != (4 if audit.unknown else 0):
        problems.append(f"exit {last.status}, {audit}: {last.said}")
    return problems


def main() -> None:
    kills, count, seed, batch_size = arguments(200, 5_000, 1, 5)
    failures = []
    for form in (EXPLICIT, ASSIGNED, CHOSEN):
        print(f"{form.name}: {count} domains, seed {seed}, at {time.strftime('%H:%M:%S')}")
        with tempfile.TemporaryDirectory() as home:
            crashes = rehearse(
                Path(home), form, kills=kills, count=count, seed=seed, batch_size=batch_size
            )
        moments = [f"{number} {moment}" for moment, number in crashes.moments.most_common()]
        print(f"  {crashes.moments.total()} kills: {', '.join(moments)}")
        print(f"  in doubt after the last kill: {len(crashes.in_doubt)} domains")
        print(f"  exit {crashes.last.status}: {crashes.audit}")
        failures += problems(form, crashes)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
