"""The progress of checks on stderr."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stderr

import pytest

from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress import CheckProgress
from dkimctl.dns.verdicts import Check, Finding, Verdict
from fakes import Clock, Terminal

PUBLISHED, MISSING, NO_ANSWER = Verdict.PUBLISHED, Verdict.MISSING, Verdict.NO_ANSWER


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


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def terminal_settings(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def look(clock):
    """Run `work(progress)`; returns all of stderr."""

    def run(work, wanted=PUBLISHED, *, stream=None, may_draw=True, quiet=False, as_json=False):
        stream = io.StringIO() if stream is None else stream
        reporter = Reporter(quiet=quiet, as_json=as_json)
        with redirect_stderr(stream):
            with CheckProgress(
                reporter, wanted, may_draw=may_draw, clock=clock, sleep=clock.sleep
            ) as progress:
                work(progress)
            assert sys.stderr is stream
        return stream.getvalue()

    return run


def check_of(name: str, verdict: Verdict) -> Check:
    return Check(f"{name}.example", "s1", f"s1.{name}.example", None, None, Finding(verdict))


def checks_of(**verdicts: Verdict) -> list[Check]:
    return [check_of(name, verdict) for name, verdict in verdicts.items()]


def rounds(*rounds_of_checks):
    """Work of rounds: all checks in the first, those that are checked again in the rest."""

    def work(progress):
        now: dict[str, Check] = {}
        for number, checks in enumerate(rounds_of_checks):
            if number:
                progress.pause(5, list(now.values()))
            for check in checks:
                progress.checked(check)
                now[check.fqdn] = check

    return work


def drawn(text: str) -> list[str]:
    """The texts that were drawn, in order."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return [line.strip("━╸╺ \r") for line in re.split(r"[\r\n]+", plain) if line.strip("━╸╺ \r")]


THREE = checks_of(a=MISSING, b=PUBLISHED, c=NO_ANSWER)


def test_each_change_is_a_line_without_a_terminal(look):
    text = look(rounds(THREE, checks_of(a=PUBLISHED, c=NO_ANSWER), checks_of(c=PUBLISHED)))
    assert text.splitlines() == [
        "dkimctl: 1 of 3 published; checking the rest again",
        "dkimctl: s1.a.example: missing -> published (2 of 3 published)",
        "dkimctl: s1.c.example: no answer -> published (3 of 3 published)",
    ]


def test_change_for_the_worse_is_a_line_as_well(look):
    text = look(rounds(THREE, checks_of(a=Verdict.TRUNCATED, c=MISSING), checks_of(a=MISSING)))
    assert text.splitlines()[1:] == [
        "dkimctl: s1.a.example: missing -> truncated (1 of 3 published)",
        "dkimctl: s1.c.example: no answer -> missing (1 of 3 published)",
        "dkimctl: s1.a.example: truncated -> missing (1 of 3 published)",
    ]


def test_rounds_without_a_change_write_nothing(look):
    text = look(rounds(THREE, *[checks_of(a=MISSING, c=NO_ANSWER)] * 20))
    assert text == "dkimctl: 1 of 3 published; checking the rest again\n"


def test_missing_records_are_called_gone_if_expected(look):
    text = look(rounds(checks_of(a=MISSING, b=PUBLISHED), checks_of(b=MISSING)), MISSING)
    assert text.splitlines() == [
        "dkimctl: 1 of 2 gone; checking the rest again",
        "dkimctl: s1.b.example: published -> missing (2 of 2 gone)",
    ]


def test_single_round_writes_nothing_without_a_terminal(look, clock):
    def work(progress):
        for check in THREE * 100:
            clock.now += 1
            progress.checked(check)

    assert look(work) == ""


@pytest.mark.parametrize(
    "options", [{"quiet": True}, {"quiet": True, "stream": Terminal()}, {"as_json": True}]
)
def test_quiet_writes_nothing(look, options):
    assert look(rounds(THREE, checks_of(a=PUBLISHED, c=PUBLISHED)), **options) == ""


def test_pause_is_as_long_as_asked_for_with_and_without_a_terminal(look, clock):
    for stream in (io.StringIO(), Terminal()):
        begun = clock.now
        look(rounds(THREE, checks_of(a=MISSING)), stream=stream)
        assert clock.now == pytest.approx(begun + 5)


def test_pause_is_one_sleep_without_a_terminal(look, clock):
    look(rounds(THREE, checks_of(a=MISSING)))
    assert clock.sleeps == [5]


def test_sleeps_are_short_on_a_terminal(look, clock):
    look(rounds(THREE, checks_of(a=MISSING)), stream=Terminal())
    assert max(clock.sleeps) <= 0.5


def test_sleep_that_ends_early_is_continued(clock):
    def nap(seconds):
        clock.sleep(min(seconds, 1.5))

    reporter = Reporter(quiet=True)
    with CheckProgress(reporter, PUBLISHED, may_draw=False, clock=clock, sleep=nap) as progress:
        progress.pause(4, THREE)
    assert clock.sleeps == [1.5, 1.5, 1]


def test_short_round_draws_nothing(look, clock):
    def work(progress):
        for check in THREE * 3:
            clock.now += 0.1
            progress.checked(check)

    assert look(work, stream=Terminal()) == ""


def test_long_round_draws_how_many_are_checked(look, clock):
    def work(progress):
        for check in THREE * 10:
            clock.now += 0.1
            progress.checked(check)

    texts = drawn(look(work, stream=Terminal()))
    assert texts[0] == "10 checked"
    assert texts[-1] == "30 checked" or texts[-1] == "29 checked"
    assert len(texts) < 25


def test_pause_is_drawn_second_by_second(look):
    texts = drawn(look(rounds(THREE, checks_of(a=PUBLISHED)), stream=Terminal()))
    waits = [f"1 of 3 published, next check in {left} s" for left in (5, 4, 3, 2, 1)]
    assert [text for text in dict.fromkeys(texts) if "next" in text] == waits


def test_later_round_counts_all_records(look, clock):
    def work(progress):
        for check in THREE:
            progress.checked(check)
        progress.pause(1, THREE)
        for check in checks_of(a=PUBLISHED, c=PUBLISHED):
            clock.now += 1
            progress.checked(check)

    texts = list(dict.fromkeys(drawn(look(work, stream=Terminal()))))
    assert texts[-2:] == ["2/3 checked", "3/3 checked"]


def test_changes_are_no_lines_on_a_terminal(look):
    text = look(rounds(THREE, checks_of(a=PUBLISHED)), stream=Terminal())
    assert "->" not in text


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_dumb_terminal_has_lines(look, monkeypatch, term):
    monkeypatch.setenv("TERM", term)
    text = look(rounds(THREE, checks_of(a=PUBLISHED)), stream=Terminal())
    assert "\x1b" not in text
    assert "missing -> published" in text


def test_lines_are_written_if_no_bar_may_be_drawn(look):
    text = look(rounds(THREE, checks_of(a=PUBLISHED)), stream=Terminal(), may_draw=False)
    assert "missing -> published" in text
    assert "\x1b" not in text


def test_bar_leaves_nothing_behind(look):
    text = look(rounds(THREE, checks_of(a=PUBLISHED)), stream=Terminal())
    assert text.endswith("\x1b[2K")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


@pytest.mark.parametrize("room", [0, 500, 1500])
def test_closed_terminal_does_not_end_the_work(look, clock, room, tmp_path):
    seen = []

    def work(progress):
        rounds(THREE, checks_of(a=PUBLISHED), checks_of(c=PUBLISHED))(progress)
        seen.append(clock.now)

    with (tmp_path / "file").open("w") as file:
        look(work, stream=BreakingTerminal(room, file))
    assert seen == [pytest.approx(1010)]
    assert room or clock.sleeps == [5, 5]  # nothing is drawn any more


def test_control_characters_in_a_name_are_escaped(look):
    def work(progress):
        name = "x\x1b[2J\ny"
        progress.pause(1, checks_of(**{name: MISSING}))
        progress.checked(check_of(name, PUBLISHED))

    text = look(work)
    assert "s1.x\\x1b[2J\\x0ay.example: missing -> published" in text
    assert text.count("\n") == 2
