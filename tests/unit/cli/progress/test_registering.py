"""The progress of a registration on stderr."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.cli.output.streams import Color, Reporter
from dkimctl.cli.progress import RegistrationProgress
from dkimctl.models.registration import Outcome, Registration, Result
from fakes import Clock, Terminal

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def results(count, outcome=Outcome.CREATED):
    return [Result(Registration("example.com"), outcome)] * count


class BrokenTerminal(Terminal):
    """One whose window was closed."""

    def write(self, text):
        raise OSError(5, "Input/output error")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def terminal_settings(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def watch(clock):
    """Run `work(progress, reporter)`; gives all that came on stderr."""

    def run(
        work,
        total=5000,
        *,
        stream=None,
        verbose=False,
        may_draw=True,
        quiet=False,
        color=Color.AUTO,
    ):
        stream = io.StringIO() if stream is None else stream
        reporter = Reporter(quiet=quiet, color=color)
        with redirect_stderr(stream):
            with RegistrationProgress(
                total, reporter, verbose=verbose, may_draw=may_draw, clock=clock
            ) as progress:
                work(progress, reporter)
            assert sys.stderr is stream
        return stream.getvalue()

    return run


@pytest.fixture
def long_run(clock):
    """Work of 12 seconds, with 310 entries a second."""

    def work(progress, reporter):
        for _ in range(12):
            clock.now += 1
            progress.settled(results(309))
            progress.settled(results(1, Outcome.FAILED))

    return work


def test_verbose_writes_a_line_every_five_seconds_without_a_terminal(watch, long_run):
    assert watch(long_run, verbose=True).splitlines() == [
        "dkimctl: 1549 of 5000 done, 4 need attention, 0 waiting, 310 a second, 12 s left",
        "dkimctl: 3099 of 5000 done, 9 need attention, 0 waiting, 310 a second, 7 s left",
    ]


def test_line_is_written_even_if_only_time_passes(watch, clock):
    def work(progress, reporter):
        for _ in range(10):
            clock.now += 0.5
            progress.tick()

    assert watch(work, verbose=True) == (
        "dkimctl: 0 of 5000 done, 0 need attention, 0 waiting, 0.0 a second\n"
    )


@pytest.mark.parametrize(
    "options", [{}, {"verbose": True, "quiet": True}, {"stream": Terminal(), "quiet": True}]
)
def test_nothing_is_written_with_quiet_or_without_verbose(watch, long_run, options):
    assert watch(long_run, **options) == ""


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome.CREATED, "0 need attention"),
        (Outcome.EXISTS, "0 need attention"),
        *((outcome, "1 needs attention") for outcome in ("differs", "taken", "invalid")),
        *((outcome, "1 needs attention") for outcome in ("unusable", "failed", "unknown")),
    ],
)
def test_other_outcomes_than_created_and_exists_need_attention(watch, clock, outcome, words):
    def work(progress, reporter):
        clock.now += 5
        progress.settled(results(1, Outcome(outcome)))

    assert watch(work, verbose=True) == (
        f"dkimctl: 1 of 5000 done, {words}, 0 waiting, 0.2 a second, 6 h 56 min left\n"
    )


def test_waiting_entries_are_counted_until_they_are_tried_again(watch, clock):
    def work(progress, reporter):
        clock.now += 5
        progress.waiting(50, 2, "503")
        progress.waiting(100, 8, "503")
        clock.now += 5
        progress.settled(results(1))
        clock.now += 5
        progress.tick()

    counts = re.findall(r"(\d+) waiting", watch(work, verbose=True))
    assert counts == ["50", "100", "0"]


def test_no_more_entries_wait_than_are_left(watch, clock):
    def work(progress, reporter):
        progress.waiting(50, 60, "503")
        clock.now += 5
        progress.settled(results(80))

    assert "80 of 100 done, 0 need attention, 20 waiting" in watch(work, 100, verbose=True)


def test_entries_from_the_ledger_do_not_count_in_the_rate(watch, clock):
    def work(progress, reporter):
        progress.settled(results(40_000))
        for _ in range(10):
            clock.now += 1
            progress.settled(results(100))

    last = watch(work, 50_000, verbose=True).splitlines()[-1]
    assert last.endswith("41000 of 50000 done, 0 need attention, 0 waiting, 100 a second, "
                         "1 min 30 s left")  # fmt: skip


def test_rate_is_that_of_the_last_half_minute(watch, clock):
    def work(progress, reporter):
        for second in range(120):
            clock.now += 1
            progress.settled(results(100 if second < 60 else 20))

    lines = watch(work, 8000, verbose=True).splitlines()
    assert "100 a second, 25 s left" in lines[10]
    assert lines[-1].endswith("20 a second, 40 s left")


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


def test_short_run_draws_nothing(watch, clock):
    def work(progress, reporter):
        clock.now += 0.99
        progress.settled(results(4999))
        clock.now += 5
        progress.settled(results(1))

    assert watch(work, stream=Terminal()) == ""


@pytest.mark.parametrize("verbose", [True, False])
def test_longer_run_has_a_bar_on_a_terminal(watch, long_run, verbose):
    shown = plain(watch(long_run, stream=Terminal(), verbose=verbose))
    assert "━ 3719/5000 done, 11 need attention, 0 waiting, 310/s, 5 s left" in shown
    assert "dkimctl:" not in shown


@pytest.mark.parametrize(
    ("settings", "options"), [({"TERM": "dumb"}, {}), ({}, {"may_draw": False})]
)
def test_verbose_writes_lines_if_no_bar_is_drawn(watch, long_run, monkeypatch, settings, options):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert watch(long_run, stream=Terminal(), **options) == ""
    lines = watch(long_run, stream=Terminal(), verbose=True, **options)
    assert lines.startswith("dkimctl: 1549 of 5000 done")
    assert "━" not in lines


def test_no_color_is_honoured(watch, long_run, monkeypatch):
    assert re.search(r"\x1b\[32m━", watch(long_run, stream=Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*m", watch(long_run, stream=Terminal()))


@pytest.mark.parametrize("no_color", ["", "1"])
def test_the_colour_option_overrides_no_color(watch, long_run, monkeypatch, no_color):
    monkeypatch.setenv("NO_COLOR", no_color)
    shown = watch(long_run, stream=Terminal(), color=Color.ALWAYS)
    assert re.search(r"\x1b\[32m━", shown)
    shown = watch(long_run, stream=Terminal(), color=Color.NEVER)
    assert not re.search(r"\x1b\[[\d;]*m", shown)


def test_closed_terminal_does_not_end_the_run(watch, clock, long_run):
    assert watch(long_run, stream=BrokenTerminal()) == ""


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
    assert stream.getvalue().rfind("\x1b[?25h") > stream.getvalue().rfind("\x1b[?25l")


_TIME = r"(\d+ h )?(\d+ min)?( ?\d+ s)?"
_ANY_LINE = re.compile(
    rf"dkimctl: (waiting {_TIME} for \d+ domains?: 503|\d+ of \d+ done, \d+ needs? attention, "
    rf"\d+ waiting, \d+(\.\d)? a second(, {_TIME} left)?)"
)


@given(
    total=st.integers(0, 10**6),
    steps=st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 100), st.floats(0, 1e4))),
    is_terminal=st.booleans(),
)
def test_any_numbers_are_shown(total, steps, is_terminal):
    clock = Clock()
    with (
        redirect_stderr(Terminal() if is_terminal else io.StringIO()) as stream,
        RegistrationProgress(
            total, Reporter(), verbose=True, may_draw=True, clock=clock
        ) as progress,
    ):
        for passed, count, seconds in steps:
            clock.now += passed
            progress.settled(results(count))
            progress.waiting(count, seconds, "503")
            progress.tick()
    for line in screen(stream.getvalue()):
        assert _ANY_LINE.fullmatch(line)


_LINE = "[bold]domain[/] :smile: " + " ".join(f"word{number}" for number in range(60)) + " end"
_PROGRAM = f"""
import sys
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress import RegistrationProgress
from dkimctl.models.registration import Outcome, Registration, Result

now, reporter, done = 0.0, Reporter(), Result(Registration("example.com"), Outcome.CREATED)
clock = lambda: now
with RegistrationProgress(
    100_000, reporter, verbose=False, may_draw=True, clock=clock
) as progress:
    for second in range(20):
        now += 1
        progress.settled([done] * 4567)
        reporter.warn({_LINE!r} + " \\x1b[2J", hint="second line")
        sys.stderr.write("in ")
        sys.stderr.write("parts\\n")
reporter.note("the end")
"""


@posix_only
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("no_color", ["", "1"])
def test_lines_are_whole_above_the_bar_which_is_gone_at_the_end(columns, no_color):
    shown = on_terminal(_PROGRAM, columns, no_color)
    line = f"dkimctl: warning: {_LINE} \\x1b[2J"
    assert screen(shown) == [line, "hint: second line", "in parts"] * 20 + ["the end"]
    bars = re.findall(r"━[━╸╺ ]* \d+/\d+ done[^\r\n\x1b]*", plain(shown))
    assert any("s left" in bar for bar in bars)
    assert max(map(len, bars)) <= columns
    assert ("\x1b[1;33m" in shown) is not bool(no_color)


def plain(shown):
    """Without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", shown)


def screen(shown):
    """The lines that stand on a terminal of any width at the end, without colours."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", plain(shown)):
        match part:
            case "\n":
                row += 1
                lines += [""] * (row >= len(lines))
                column = 0
            case "\r":
                column = 0
            case "\x1b[2K":
                lines[row] = ""
            case "\x1b[1A":
                row -= 1
            case "\x1b[?25l" | "\x1b[?25h":
                pass
            case _:
                assert "\x1b" not in part, part
                before = lines[row].ljust(column)
                lines[row] = before[:column] + part + before[column + len(part) :]
                column += len(part)
    return [line for line in lines if line]


def on_terminal(program, columns, no_color):
    """Run Python code on a pseudo-terminal; gives all that it showed."""
    import fcntl
    import pty
    import struct
    import termios

    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=secondary, stdout=secondary, stderr=secondary,
        env=environment | {"TERM": "xterm-256color", "NO_COLOR": no_color},
    ) as process:  # fmt: skip
        os.close(secondary)
        shown = b""
        while True:
            try:
                data = os.read(primary, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            shown += data
        os.close(primary)
        assert process.wait(30) == 0, shown
    return shown.decode().replace("\r\n", "\n")


def test_run_that_ends_early_says_what_it_waits_for(watch):
    def work(progress, reporter):
        progress.ending(1, 30.0)
        progress.ending(8, 90.0)

    first, second = screen(watch(work, stream=io.StringIO()))
    assert "stopping; 1 request in flight, waiting up to 30 s" in first
    assert "8 requests in flight, waiting up to 1 min 30 s" in second


def test_pending_entries_are_neither_done_nor_need_attention(clock):
    from dkimctl.cli.progress import Tally

    tally = Tally(10, clock.now)
    pending = Result(Registration("a.example"), Outcome.PENDING)
    tally.settle([pending] * 4, clock.now)
    assert tally.rest(clock.now, "").startswith("0 need attention")
