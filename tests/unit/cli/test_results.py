"""The summary and the exit code of many outcomes and errors."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from dkimctl.cli.output import OutputOptions
from dkimctl.cli.report import Reporter
from dkimctl.cli.results import show, write_results
from dkimctl.errors import ExitCode, worst, worst_check
from dkimctl.formats.renderer import Format
from dkimctl.models import Outcome, Registration, Result


@pytest.mark.parametrize(
    ("choose", "order"), [(worst, [130, 3, 4, 2, 1, 0]), (worst_check, [130, 3, 2, 1, 4, 0])]
)
def test_where_several_apply_the_worst_counts(choose, order):
    for first, second in itertools.combinations(order, 2):
        assert choose([ExitCode(second), ExitCode(first)]) == first
    assert choose([]) == 0


class Unclosed(Exception):
    """Ends a block early."""


@pytest.fixture
def results():
    return [
        Result(Registration("a.example", "s1", 2048), Outcome.EXISTS),
        Result(Registration("b.example"), Outcome.TAKEN, "it belongs to another client"),
        Result(Registration("c.example"), Outcome.TAKEN, "c.example is disputed"),
    ]


@pytest.mark.parametrize("fmt", [Format.JSON, Format.OCTODNS])
def test_a_run_that_fails_leaves_the_file_as_it_was(results, tmp_path, fmt):
    path = tmp_path / "results"
    path.write_text("before")
    output = OutputOptions(fmt, zones=["example"], output=path)

    def ending_early():
        yield results[0]
        raise Unclosed

    with contextlib.suppress(Unclosed):
        show(ending_early(), output, Reporter())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fmt", Format)
def test_no_results_are_a_result_too(fmt, tmp_path):
    path = tmp_path / "results"
    write_results([], OutputOptions(fmt, zones=["example"], output=path), Reporter())
    assert path.is_file()
