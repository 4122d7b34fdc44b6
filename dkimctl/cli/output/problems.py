"""The problems of a file, as they are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.errors import Problem
from dkimctl.text.grouping import MAX_ALIKE, without_values


def problem_lines(problems: Sequence[Problem], *, lists_all: bool) -> Iterator[tuple[str, str]]:
    """What to report, each with its hint, in the order of the file.

    Of more than 20 problems that are alike, the first are listed and the rest counted, with one
    hint for all; unless it `lists_all`.
    """
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault(_kind(problem), []).append(problem)
    listed = dict.fromkeys(alike, 0)
    for problem in problems:
        kind = _kind(problem)
        listed[kind] += 1
        rest = [] if lists_all else alike[kind][MAX_ALIKE:]
        if not rest:
            yield str(problem), problem.hint
        elif listed[kind] <= MAX_ALIKE:
            yield str(problem), ""
            if listed[kind] == MAX_ALIKE:
                yield _and_more(rest), problem.hint


def _kind(problem: Problem) -> tuple[str, str]:
    return without_values(problem.message), problem.hint


def _and_more(rest: Sequence[Problem]) -> str:
    first, last = rest[0], rest[-1]
    where = f"line {first.line}"
    if last.line != first.line:
        where = f"lines {first.line} to {last.line}"
    return f"{first.file}: … and {len(rest):,} more like these ({where}; --verbose lists them)"
