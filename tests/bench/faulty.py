"""Register at a service of which every tenth answer is at fault, and see what becomes of it.

Run: python tests/bench/faulty.py [DOMAINS [SEED]]

20,000 domains at `dkimctl serve --faults` on loopback, the kinds of faults drawn evenly: with
explicit selectors until a run ends with exit 0, with selectors that the service chooses until
nothing is pending; then once more, which is to change nothing. Exit 1 where anything was
doubled, lost or told wrongly.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from audit import Audit, Record
from rehearsal import CHOSEN, EXPLICIT, Form, Run, Scene, arguments

_FAULTS = "{{seed: {}, slow: 0.2s, any: {}}}"
_MOST_RUNS = 20


class Pass(NamedTuple):
    """One run, and what was so when it had ended."""

    run: Run
    audit: Audit
    store: frozenset[Record]


def rehearse(
    home: Path, form: Form, *, count: int, share: float, seed: int, batch_size: int = 50
) -> list[Pass]:
    """Register `count` domains, with `share` of the requests at fault, until there is nothing
    left to send; the last pass is one more than that takes.
    """
    scene = Scene(home, form, count, seed, batch_size)
    passes: list[Pass] = []
    with scene.served(_FAULTS.format(seed, share)):
        while not (passes and _is_finished(form, passes[-1])) and len(passes) < _MOST_RUNS:
            passes.append(_register(scene))
        passes.append(_register(scene))
    return passes


def _register(scene: Scene) -> Pass:
    run = scene.register()
    return Pass(run, scene.audit(run), frozenset(scene.store()))


def _is_finished(form: Form, found: Pass) -> bool:
    if form is CHOSEN:  # what is unknown stays so
        return not found.audit.outcomes["pending"]
    return found.run.status == 0


def findings(form: Form, passes: list[Pass]) -> list[str]:
    """What should not be so, in words."""
    found = [text for one in passes for text in one.audit.findings()]
    if not _is_finished(form, passes[-1]):
        found.append(f"not finished after {len(passes)} runs: {passes[-1].run.said}")
    before, after = passes[-2:]
    if (before.store, before.audit.unknown) != (after.store, after.audit.unknown):
        found.append("one more run has changed what is registered, or unknown")
    status = 4 if after.audit.unknown else 0
    if after.run.status != status:
        found.append(f"exit {after.run.status} and not {status}")
    return found


def _report(passes: list[Pass]) -> None:
    for run, found, _ in passes:
        print(f"  exit {run.status}, {run.seconds:6.1f} s, {run.mib:4.0f} MiB: {found.summary()}")
    last = passes[-1].audit
    print(f"  doubled {len(last.doubled)}, lost {len(last.lost)}")


def main() -> None:
    count, seed = arguments(20_000, 1)
    failures = []
    for form in (EXPLICIT, CHOSEN):
        print(f"{form.name}: {count} domains, seed {seed}, at {time.strftime('%H:%M:%S')}")
        with tempfile.TemporaryDirectory() as home:
            passes = rehearse(Path(home), form, count=count, share=0.1, seed=seed)
        _report(passes)
        failures += findings(form, passes)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
