"""Register at a service that answers every tenth request wrongly, and check the result.

Run: python tests/bench/faulty.py [DOMAINS [SEED]]

20,000 domains at a service on loopback, with all kinds of faults (faulty_service.py): with explicit
selectors until a run exits with 0, with selectors of the service until nothing is pending; then
once more, which must change nothing. Exit 1 if anything was duplicated, lost or reported wrongly.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from audit import Audit, Record
from load import arguments
from rehearsal import CHOSEN, EXPLICIT, Form, Run, Scene

_MAX_RUNS = 20


class Pass(NamedTuple):
    """A run, and the state after it."""

    run: Run
    audit: Audit
    store: frozenset[Record]


def rehearse(
    home: Path, form: Form, *, count: int, share: float, seed: int, batch_size: int = 50
) -> list[Pass]:
    """Register `count` domains until nothing is left to send, and once more.

    `share` of the requests are at fault.
    """
    scene = Scene(home, form, count, seed, batch_size)
    passes: list[Pass] = []
    with scene.served(seed=seed, slow=0.2, any=share):
        is_last = False
        while len(passes) < _MAX_RUNS:
            run = scene.register()
            passes.append(Pass(run, scene.audit(run), frozenset(scene.store())))
            if is_last:
                break
            is_last = _is_finished(form, passes[-1])
    return passes


def _is_finished(form: Form, last: Pass) -> bool:
    if form is CHOSEN:  # unknown domains stay unknown
        return not last.audit.outcomes["pending"]
    return last.run.status == 0


def problems(form: Form, passes: list[Pass]) -> list[str]:
    """Describe every error."""
    problems = [text for each in passes for text in each.audit.problems]
    before, after = passes[-2:]
    if not _is_finished(form, after):
        problems.append(f"not finished after {len(passes)} runs: {after.run.said}")
    if (before.store, before.audit.unknown) != (after.store, after.audit.unknown):
        problems.append("another run changed what is registered or unknown")
    if after.run.status != (4 if after.audit.unknown else 0):
        problems.append(f"exit {after.run.status}: {after.run.said}")
    return problems


def main() -> None:
    count, seed = arguments(20_000, 1)
    failures = []
    for form in (EXPLICIT, CHOSEN):
        print(f"{form.name}: {count} domains, seed {seed}, at {time.strftime('%H:%M:%S')}")
        with tempfile.TemporaryDirectory() as home:
            passes = rehearse(Path(home), form, count=count, share=0.1, seed=seed)
        for run, audit, _ in passes:
            print(f"  exit {run.status}, {run.seconds:6.1f} s: {audit}")
        failures += problems(form, passes)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
