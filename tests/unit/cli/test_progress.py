"""Progress on stderr."""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest

import dkimctl.cli.checking as checking_module
import dkimctl.cli.progress as progress_module
from dkimctl.cli.checking import CheckProgress
from dkimctl.cli.progress import RegistrationProgress
from dkimctl.cli.report import Reporter
from dkimctl.dns.verdicts import Check, Finding, Verdict
from dkimctl.models import Outcome, Registration, Result
from fakes import Clock, Terminal
from terminals import run_on_terminal

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    time = SimpleNamespace(monotonic=clock, sleep=clock.sleep)
    monkeypatch.setattr(progress_module, "time", time)
    monkeypatch.setattr(checking_module, "time", time)
    return clock


@pytest.fixture(autouse=True)
def terminal_settings(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def watch(clock):
    """Run `work(progress, reporter)`; gives all that came on stderr."""

    def run(work, *, stream=None, **options):
        stream = io.StringIO() if stream is None else stream
        reporter = Reporter(**options)
        with redirect_stderr(stream):
            with RegistrationProgress(5000, reporter) as progress:
                work(progress, reporter)
            assert sys.stderr is stream
        return stream.getvalue()

    return run


@pytest.fixture
def long_run(clock):
    """Work of 12 seconds, with 310 entries a second."""
    result = Result(Registration("example.com"), Outcome.CREATED)

    def work(progress, reporter):
        for _ in range(12):
            clock.now += 1
            progress.settled([result] * 309 + [result._replace(outcome=Outcome.FAILED)])

    return work


def test_verbose_writes_a_line_every_five_seconds_without_a_terminal(watch, long_run):
    assert watch(long_run, verbose=True).splitlines() == [
        "dkimctl: 1550 of 5000 done, 5 need attention, 0 waiting, 310 a second, 12 s left",
        "dkimctl: 3100 of 5000 done, 10 need attention, 0 waiting, 310 a second, 7 s left",
    ]


@pytest.mark.parametrize(
    "options", [{}, {"verbose": True, "quiet": True}, {"stream": Terminal(), "quiet": True}]
)
def test_nothing_is_written_with_quiet_or_without_verbose(watch, long_run, options):
    assert watch(long_run, **options) == ""


def test_a_run_that_ends_early_says_what_it_waits_for(watch):
    def work(progress, reporter):
        progress.ending(1, 30.0)
        progress.ending(8, 90.0)

    first, second = screen(watch(work))
    assert "stopping; 1 request in flight, waiting up to 30 s" in first
    assert "8 requests in flight, waiting up to 1 min 30 s" in second


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_waits_are_noted_once_in_five_seconds(watch, clock, stream):
    def work(progress, reporter):
        progress.waiting(50, 1.2, "the service answered 503")
        progress.waiting(50, 4, "the service answered 503")
        clock.now += 4.9
        progress.waiting(50, 4, "the service answered 503")
        clock.now += 0.1
        progress.waiting(1, 270, "evil \x1b[31m\nlines")

    assert screen(watch(work, stream=stream())) == [
        "dkimctl: waiting 2 s for 50 domains: the service answered 503",
        r"dkimctl: waiting 4 min 30 s for 1 domain: evil \x1b[31m\x0alines",
    ]


def test_error_leaves_the_terminal_clean(watch, clock):
    stream = Terminal()

    def work(progress, reporter):
        clock.now += 2
        progress.tick()
        assert sys.stderr is not stream
        sys.stderr.write("begun")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(work, stream=stream)
    assert screen(stream.getvalue()) == ["begun"]


_LINE = "[bold]domain[/] :smile: " + " ".join(f"word{number}" for number in range(60)) + " end"


_PROGRAM = f"""
import sys
import time
from dkimctl.cli.report import Reporter
from dkimctl.cli.progress import RegistrationProgress
from dkimctl.models import Outcome, Registration, Result

now, reporter, done = 0.0, Reporter(), Result(Registration("example.com"), Outcome.CREATED)
time.monotonic = lambda: now
with RegistrationProgress(100_000, reporter) as progress:
    for second in range(20):
        now += 1
        progress.settled([done] * 4567)
        reporter.warn({_LINE!r} + " \\x1b[2J", hint="second line")
        sys.stderr.write("in ")
        sys.stderr.write("parts\\n")
reporter.note("the end")
"""


@posix_only
@pytest.mark.parametrize(
    ("columns", "encoding", "block"), [(24, "ascii", "-"), (80, "utf-8", "━"), (200, "utf-8", "━")]
)
@pytest.mark.parametrize("no_color", ["", "1"])
def test_lines_are_whole_above_the_bar_which_is_gone_at_the_end(columns, encoding, block, no_color):
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    environment |= {"TERM": "xterm-256color", "NO_COLOR": no_color}
    environment["PYTHONIOENCODING"] = encoding
    done = run_on_terminal([sys.executable, "-c", _PROGRAM], environment, columns=columns)
    assert done.status == 0
    shown = done.text.replace("\r\n", "\n")
    line = f"dkimctl: warning: {_LINE} \\x1b[2J"
    lines = screen(shown)
    assert max(map(len, lines)) <= columns
    unwrapped = "\n".join(lines).replace("\n  ", " ").splitlines()
    assert unwrapped == [line, "hint: second line", "in parts"] * 20 + ["the end"]
    bars = re.findall(rf"{block}[{block} ]* \d+/\d+ done[^\r\n\x1b]*", plain(shown))
    assert bars
    assert columns < 80 or any("s left" in bar for bar in bars)
    assert max(map(len, bars)) <= columns
    assert ("\x1b[1;33m" in shown) is not bool(no_color)


def plain(shown):
    """Without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", shown)


def screen(shown):
    """The lines that stand on a terminal of any width at the end, without colours."""
    lines = [line.rpartition("\r\x1b[2K")[2] for line in plain(shown).split("\n")]
    assert not any("\x1b" in line or "\r" in line for line in lines)
    return [line for line in lines if line]


def checks_of(**verdicts: Verdict) -> list[Check]:
    return [
        Check(f"{name}.example", "s1", f"s1.{name}.example", None, None, Finding(verdict))
        for name, verdict in verdicts.items()
    ]


def check_in_rounds(stream, **options):
    """Three checks, in as many rounds as it takes until all are published."""
    with redirect_stderr(stream):
        with CheckProgress(Reporter(**options), Verdict.PUBLISHED) as progress:
            now = {}
            for number, checks in enumerate((
                checks_of(a=Verdict.MISSING, b=Verdict.PUBLISHED, c=Verdict.NO_ANSWER),
                checks_of(a=Verdict.PUBLISHED, c=Verdict.NO_ANSWER),
                checks_of(c=Verdict.PUBLISHED),
            )):  # fmt: skip
                if number:
                    progress.pause(5, list(now.values()))
                for check in checks:
                    progress.checked(check)
                    now[check.fqdn] = check
        assert sys.stderr is stream


def test_without_a_terminal_each_change_is_a_line(clock):
    stream = io.StringIO()
    check_in_rounds(stream)
    assert stream.getvalue().splitlines() == [
        "dkimctl: 1 of 3 published; checking the rest again",
        "dkimctl: s1.a.example: missing -> published (2 of 3 published)",
        "dkimctl: s1.c.example: no answer -> published (3 of 3 published)",
    ]


@pytest.mark.parametrize("options", [{"quiet": True}, {"as_json": True}])
def test_checks_in_rounds_write_nothing_with_quiet_or_as_json(clock, options):
    stream = io.StringIO()
    check_in_rounds(stream, **options)
    assert stream.getvalue() == ""


class BreakingTerminal(Terminal):
    """A terminal that is closed after `room` characters."""

    def __init__(self, room, file):
        super().__init__()
        self.room = room
        self.fileno = file.fileno

    def write(self, text):
        if self.tell() + len(text) > self.room:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.mark.parametrize("room", [0, 500, 1500])
def test_closed_terminal_does_not_end_the_work(clock, room, tmp_path):
    with (tmp_path / "file").open("w") as file:
        check_in_rounds(BreakingTerminal(room, file))
    assert clock.now == pytest.approx(1010)
    assert room or clock.sleeps == [5, 5]  # nothing is drawn any more
