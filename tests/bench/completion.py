"""Measure a TAB: what the completion functions of bash, zsh and fish take, each in a real shell.

Run: python tests/bench/completion.py [ROUNDS]

A process of each shell completes a line once, and another one many times; the difference counts,
of the best of ROUNDS. What the shell itself does before and after, such as drawing the list, does
not. Beside them: the start of Python, which has a part in each name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))

from completers import complete
from needs import extend_path

TIMES = 20  # in one process
LINES = {
    "commands": "dkimctl ",
    "options": "dkimctl register --",
    "choices": "dkimctl show-dns --format=",
    "domains": "dkimctl show-dns --sandbox e",
    "profiles": "dkimctl status --profile ",
}
SPECS = "- {sign_domain: example.com, selector: s1, key_len: 2048}\n"


def best(action: Callable[[], object], rounds: int) -> float:
    """The least time that it takes, in milliseconds: a busy machine only makes it longer."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times) * 1000


def of_a_tab(shell: str, path: str, line: str, rounds: int, **place) -> float:
    """The time of one completion of a line, in milliseconds."""
    once = best(lambda: complete(shell, path, [line], **place), rounds)
    often = best(lambda: complete(shell, path, [line] * (TIMES + 1), **place), rounds)
    return (often - once) / TIMES


def main() -> None:
    extend_path()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    python = [sys.executable, "-c", "pass"]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "one.yaml").write_text(SPECS)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"HOME": name, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        place = {"home": home, "environment": environment}
        tool = ["dkimctl", "register", "--sandbox", "one.yaml"]
        subprocess.run(tool, cwd=home, env=environment, capture_output=True, check=True)
        start = best(lambda: subprocess.run(python, check=True), rounds)
        print(f"{'python -c pass':20} {start:6.1f} ms")
        for shell in ("bash", "zsh", "fish"):
            if path := shutil.which(shell):
                for what, line in LINES.items():
                    taken = of_a_tab(shell, path, line, rounds, **place)
                    print(f"{shell:5} {what:14} {taken:6.1f} ms")


if __name__ == "__main__":
    main()
