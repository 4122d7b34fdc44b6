"""Measure checking 100,000 entries, compared with PyYAML alone on the same file.

Run: python tests/bench/load.py [ENTRIES]

The floor reads the parser's events and drops them; the peer builds plain objects with
yaml.CSafeLoader, without checks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLOOR = """
import sys, yaml
for event in yaml.parse(open(sys.argv[1]), Loader=yaml.CSafeLoader):
    pass
"""
PEER = "import sys, yaml\nyaml.load(open(sys.argv[1]), Loader=yaml.CSafeLoader)\n"
SHAPES = {
    "names": "- d{}.example.com\n",
    "mappings": "- {{sign_domain: d{}.example.com, selector: s2026, key_len: 2048,"
    " start_date: 2027-07-01T00:00+09:00}}\n",
}
# Runs a command and prints its wall time in seconds and its peak memory in KiB.
MEASURE = """
import resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measure(words: list[str], **options) -> tuple[float, float]:
    """Best of three: wall time in seconds, peak memory in MiB."""
    runs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *words], check=True, capture_output=True, **options
        )
        seconds, kib = map(float, done.stdout.split())
        runs.append((seconds, kib / 1024))
    return min(runs)


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    tool = str(Path(sys.executable).with_name("dkimctl"))
    with tempfile.TemporaryDirectory() as home:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        options = {"cwd": home, "env": environment | {"HOME": home}}
        for shape, line in SHAPES.items():
            path = Path(home, f"{shape}.yaml")
            path.write_text("".join(line.format(number) for number in range(entries)))
            commands = {
                "floor: events alone": [sys.executable, "-c", FLOOR, str(path)],
                "peer: yaml.load": [sys.executable, "-c", PEER, str(path)],
                "register --dry-run (json)": [
                    tool, "register", "--sandbox", "--dry-run", str(path), "--format", "json"
                ],
                "register --dry-run (table)": [
                    tool, "register", "--sandbox", "--dry-run", str(path)
                ],
            }  # fmt: skip
            print(f"{entries} {shape}, at {time.strftime('%H:%M:%S')}")
            for label, words in commands.items():
                seconds, mib = measure(words, **options)
                print(f"  {label:28} {seconds:6.2f} s {mib:7.0f} MiB")


if __name__ == "__main__":
    main()
