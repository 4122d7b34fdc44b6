"""Long tables on a terminal go through a pager."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from terminals import Shown, run_on_terminal

PROGRAM = """
import os
from dkimctl.cli.output import write_chunks
lines = (f"line {number}" + os.environ.get("REST", "") + "\\n"
         for number in range(int(os.environ["LINES_TO_WRITE"])))
write_chunks(lines, None, is_paged=True)
print("the summary")
"""
PATIENT = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("ready", flush=True)
signal.sigwait({signal.SIGINT})
print("interrupted")
"""
FULL = 30  # lines, more than fit the terminal of 24

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@pytest.fixture
def show(tmp_path) -> Callable[..., Shown]:
    """Write lines on a terminal of 24 lines and 80 columns, with such an environment."""

    def run(lines: int = FULL, keys: str = "", **environ: str) -> Shown:
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "LINES_TO_WRITE": str(lines)}
        return run_on_terminal([sys.executable, "-c", PROGRAM], environment | environ, keys=keys)

    return run


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def pager(tmp_path) -> str:
    """A pager that marks every line, and shows what it is told by the environment."""
    return script(tmp_path / "pager", 'echo "LESS=$LESS"; sed "s/^/paged /"')


@pytest.mark.parametrize(("columns", "is_paged"), [(80, False), (60, True)])
def test_long_lines_take_several(show, pager, columns, is_paged):
    shown = show(11, PAGER=pager, REST="x" * 70 + "\x1b[32my\x1b[0m" * 60, COLUMNS=str(columns))
    assert shown.status == 0
    assert (shown.lines[0] == "LESS=FRX") is is_paged
    assert shown.lines[-1] == "the summary"


@pytest.mark.parametrize(
    "environ",
    [{"PAGER": " "}, {"PAGER": "cat"}, {"PAGER": "/nowhere/pager -x"},
     {"TERM": "dumb", "PAGER": "false"}, {"PATH": "/nowhere"}],
)  # fmt: skip
def test_without_a_pager_all_is_printed(show, environ):
    assert show(**environ).lines == [*(f"line {n}" for n in range(FULL)), "the summary"]


@pytest.mark.parametrize("name", ["less", "more"])
def test_without_a_choice_it_is_less_or_else_more(show, tmp_path, name):
    script(tmp_path / name, f'echo "this is {name}"; /bin/cat')
    script(tmp_path / "more", 'echo "this is more"; /bin/cat') if name == "less" else None
    shown = show(PATH=str(tmp_path))
    assert (shown.status, shown.lines[0]) == (0, f"this is {name}")


def test_a_pager_that_ends_early_is_not_an_error(show):
    shown = show(100_000, PAGER="head -n 1")
    assert (shown.status, shown.lines) == (0, ["line 0", "the summary"])
    shown = show(100_000, PAGER="(exit 3)")
    assert (shown.status, shown.lines) == (0, ["the summary"])


def test_ctrl_c_is_for_the_pager(show, tmp_path):
    # A shell's trap may run late: after a read that began between the signal and the trap.
    patient = tmp_path / "patient.py"
    patient.write_text(PATIENT)
    shown = show(PAGER=f"{sys.executable} {patient}", keys="\x03")
    assert shown.status == 0
    assert "interrupted" in shown.text
    assert shown.lines[-1] == "the summary"
    assert "Traceback" not in shown.text
