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
from rehearsal import CHOSEN, EXPLICIT, Form, Run, Scene, arguments

_MAX_RUNS = 20


class Pass(NamedTuple):
    """One run, and the state after it."""

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
        while not (passes and _is_finished(form, passes[-1])) and len(passes) < _MAX_RUNS:
            passes.append(_register(scene))
        passes.append(_register(scene))
    return passes


def _register(scene: Scene) -> Pass:
    run = scene.register()
    return Pass(run, scene.audit(run), frozenset(scene.store()))


def _is_finished(form: Form, last: Pass) -> bool:
    if form is CHOSEN:  # unknown domains stay unknown
        return not last.audit.outcomes["pending"]
    return last.run.status == 0


def problems(form: Form, passes: list[Pass]) -> list[str]:
    """Describe every error."""
    problems = [text for one in passes for text in one.audit.problems()]
    if not _is_finished(form, passes[-1]):
        problems.append(f"not finished after {len(passes)} runs: {passes[-1].run.said}")
    before, after = passes[-2:]
    if (before.store, before.audit.unknown) != (after.store, after.audit.unknown):
        problems.append("another run changed what is registered or unknown")
    status = 4 if after.audit.unknown else 0
    if after.run.status != status:
        problems.append(f"exit {after.run.status} and not {status}")
    return problems


def _report(passes: list[Pass]) -> None:
    for run, audit, _ in passes:
        print(f"  exit {run.status}, {run.seconds:6.1f} s: {audit.summary()}")
    last = passes[-1].audit
    print(f"  duplicated {len(last.duplicated)}, lost {len(last.lost)}")


def main() -> None:
    count, seed = arguments(20_000, 1)
    failures = []
    for form in (EXPLICIT, CHOSEN):
        print(f"{form.name}: {count} domains, seed {seed}, at {time.strftime('%H:%M:%S')}")
        with tempfile.TemporaryDirectory() as home:
            passes = rehearse(Path(home), form, count=count, share=0.1, seed=seed)
        _report(passes)
        failures += problems(form, passes)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
