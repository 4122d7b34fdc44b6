"""Writing to stdout in the background: in order, whole, and without waiting for the reader."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

PROGRAM = """
import sys
from dkimctl.cli import report as streams
if sys.argv[1] == "no thread":
    streams.start_daemon = lambda work, name: None
writer = streams.BackgroundWriter()
for number in range(20_000):
    writer.write(f"{number:06} \\u4f8b\\n")
print("all taken", file=sys.stderr, flush=True)
print(writer.finish(), file=sys.stderr)
"""
WHOLE = "".join(f"{number:06} 例\n" for number in range(20_000)).encode()


def start(threads="threads"):
    return subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", PROGRAM, threads],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("threads", ["threads", "no thread"])
def test_what_the_reader_has_not_taken_waits_in_memory(threads):
    process = start(threads)
    assert process.stderr.readline().strip() == b"all taken"  # and not a byte is read yet
    assert process.poll() is None
    out, err = process.communicate(timeout=60)
    assert out == WHOLE
    assert err.strip() == b"None"


def test_a_reader_that_goes_away_is_reported_and_ends_the_wait():
    process = start()
    assert process.stderr.readline().strip() == b"all taken"
    process.stdout.close()
    process.stdout = None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    _, err = process.communicate()
    watchdog.cancel()
    assert b"Broken pipe" in err
