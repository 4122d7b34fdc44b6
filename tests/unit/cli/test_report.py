"""What is said on stderr: in colour, of many things alike, and at the end."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.cli.report import Reporter, problem_lines
from dkimctl.cli.results import AttentionWarnings
from dkimctl.errors import Problem
from dkimctl.models import Outcome, Registration, Result


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=200))
def test_nothing_is_lost(messages):
    problems = [Problem("f", line, 1, text, "") for line, text in enumerate(messages, 1)]
    lines = [text for text, _ in problem_lines(problems, 20)]
    counted = [text for text in lines if "…" in text]
    more = sum(int(text.split(" and ")[1].split(" ")[0].replace(",", "")) for text in counted)
    assert len(lines) - len(counted) + more == len(problems)


@pytest.fixture
def warnings_of(capsys):
    """What is written about these reasons of results, by outcome."""

    def write(*results, reporter=None):
        reporter = reporter or Reporter()
        warnings = AttentionWarnings(reporter)
        for number, (outcome, reason) in enumerate(results):
            domain = f"d{number}.example"
            warnings.add(Result(Registration(domain, "s1"), outcome, reason.format(domain)))
        warnings.close()
        reporter.close()
        return capsys.readouterr().err.splitlines()

    return write


def test_of_many_reasons_twenty_are_given_and_one_hint(warnings_of):
    lines = warnings_of(*[(Outcome.INVALID, f"reason {n}") for n in range(50)])
    assert len(lines) == 20 + 1 + 1
    assert sum(line.startswith("hint:") for line in lines) == 1
    assert lines[-1] == (
        "dkimctl: warning: invalid: 30 more, for other reasons (--verbose lists all)"
    )


PROGRAM = """
import sys
from dkimctl.cli import report as streams
if sys.argv[1] == "no thread":
    streams.start_daemon = lambda work, name: None
def lines():
    for number in range(20_000):
        yield f"{number:06} \\u4f8b\\n"
    print("all taken", file=sys.stderr, flush=True)
streams.write(lines(), in_background=True, must_arrive=True)
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
    assert err == b""


def test_a_reader_that_goes_away_is_reported_and_ends_the_wait():
    process = start()
    assert process.stderr.readline().strip() == b"all taken"
    process.stdout.close()
    process.stdout = None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    _, err = process.communicate()
    watchdog.cancel()
    assert b"could not be written: Broken pipe" in err
