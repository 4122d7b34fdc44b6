"""The summary and the exit code of many outcomes and errors."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter

import pytest

from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.results import (
    Doing,
    ResultSink,
    Shown,
    worst,
    worst_check,
    write_results,
)
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode, OutputError
from dkimctl.models.registration import Outcome, Registration, Result
from dkimctl.render.renderer import Format


@pytest.mark.parametrize(
    ("choose", "order"), [(worst, [130, 3, 4, 2, 1, 0]), (worst_check, [130, 3, 2, 1, 4, 0])]
)
def test_where_several_apply_the_worst_counts(choose, order):
    for first, second in itertools.combinations(order, 2):
        assert choose([ExitCode(second), ExitCode(first)]) == first
    assert choose([]) == 0


@pytest.mark.parametrize("choose", [worst, worst_check])
def test_every_exit_code_has_its_place(choose):
    assert all(choose([code]) is code for code in ExitCode)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_an_exit_code(outcome):
    assert Shown(Counter([outcome]), None).status in (0, 1, 4)


def test_what_could_not_be_written_is_4_at_least():
    shown = Shown(Counter([Outcome.TAKEN, Outcome.CREATED]), OutputError("full"))
    assert shown.status == 4


class Unclosed(Exception):
    """Ends a block early."""


@pytest.fixture
def results():
    return [
        Result(Registration("a.example", "s1", 2048), Outcome.EXISTS),
        Result(Registration("b.example"), Outcome.TAKEN, "it belongs to another client"),
        Result(Registration("c.example"), Outcome.TAKEN, "c.example is disputed"),
    ]


def test_a_sink_writes_each_result_counts_it_and_warns_once_with_a_hint(results, tmp_path, capsys):
    path = tmp_path / "results.csv"
    with ResultSink(OutputOptions(Format.CSV, output=path), Reporter(), Doing.REGISTERING) as sink:
        for result in results:
            sink.emit(result)
        assert not path.exists()  # whole or not at all
        shown = sink.close()
    assert shown.counts == {Outcome.EXISTS: 1, Outcome.TAKEN: 2}
    assert (shown.status, shown.failure) == (1, None)
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == [
        "sign_domain", "a.example", "b.example", "c.example",
    ]  # fmt: skip
    err = capsys.readouterr().err
    assert err.count("warning:") == 2
    assert err.count("hint:") == 1
    assert err.endswith("dkimctl: already there 1, taken 2\n")


@pytest.mark.parametrize("fmt", [Format.JSON, Format.OCTODNS])
def test_a_run_that_fails_leaves_the_file_as_it_was(results, tmp_path, fmt):
    path = tmp_path / "results"
    path.write_text("before")
    output = OutputOptions(fmt, zones=["example"], output=path)
    with contextlib.suppress(Unclosed), ResultSink(output, Reporter(), Doing.REGISTERING) as sink:
        sink.emit(results[0])
        raise Unclosed
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_sink_reports_a_file_that_cannot_be_written(results, tmp_path, capsys):
    output = OutputOptions(Format.JSON, output=tmp_path / "nowhere" / "results")
    with ResultSink(output, Reporter(), Doing.REGISTERING) as sink:
        for result in results:
            sink.emit(result)
        shown = sink.close()
    assert shown.status == 4
    assert sum(shown.counts.values()) == 3
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("fmt", Format)
def test_no_results_are_a_result_too(fmt, tmp_path):
    path = tmp_path / "results"
    write_results([], OutputOptions(fmt, zones=["example"], output=path), Reporter())
    assert path.is_file()
