"""Measure the start of commands, compared with a hello-world of the same libraries.

Run: python tests/bench/startup.py [ROUNDS]

Each round runs all commands in turn, so that a busy machine slows them alike; compare the ratios of
the medians.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load import TOOL, arguments, environment

HELLO = """\
import typer

app = typer.Typer()


@app.command()
def main(name: str = "world") -> None:
    print(f"Hello {name}")


app()
"""
SPECS = "- {sign_domain: example.com, selector: s1, key_len: 2048, enable: false}\n"


def measure(commands: dict[str, list[str]], rounds: int, **options) -> dict[str, float]:
    """The median wall time of each command, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 2):
        for name, words in commands.items():
            started = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True, **options)
            if number >= 2:  # the first rounds compile the byte code
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    (rounds,) = arguments(30)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "hello.py").write_text(HELLO)
        (home / "one.yaml").write_text(SPECS)
        options = {"cwd": home, "env": environment(home)}
        hello = [sys.executable, "hello.py"]
        register = [TOOL, "register", "--sandbox", "one.yaml"]
        subprocess.run(register, check=True, capture_output=True, **options)
        medians = measure(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "hello": hello,
                "hello --help": [*hello, "--help"],
                "--version": [TOOL, "--version"],
                "show-dns": [TOOL, "show-dns", "--sandbox"],
                "register --dry-run": [*register, "--dry-run"],
                "register (second run)": register,
                "--help": [TOOL, "--help"],
            },
            rounds,
            **options,
        )
    for label, median in medians.items():
        floor = "hello --help" if label.endswith("--help") else "hello"
        print(f"{label:24} {median:6.1f} ms  {median / medians[floor]:5.2f} x {floor}")


if __name__ == "__main__":
    main()
