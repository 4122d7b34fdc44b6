"""Writing to stdout in the background: in order, whole, and without waiting for the reader."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

PROGRAM = """
import sys
from dkimctl.cli.output.background_writer import BackgroundWriter
writer = BackgroundWriter(*eval(sys.argv[1]))
for number in range(20_000):
    writer.write(f"{number:06} \\u4f8b\\n")
print("all taken", file=sys.stderr, flush=True)
print(writer.finish(), file=sys.stderr)
"""
WHOLE = "".join(f"{number:06} 例\n" for number in range(20_000)).encode()


def start(arguments="()"):
    return subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", PROGRAM, arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("arguments", ["()", "(lambda work, name: None,)"])
def test_what_the_reader_has_not_taken_waits_in_memory(arguments):
    """Also where no thread can be started."""
    process = start(arguments)
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
