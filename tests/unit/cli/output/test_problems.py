from hypothesis import given
from hypothesis import strategies as st

from dkimctl.cli.output.streams import problem_lines
from dkimctl.errors import Problem


def _problems(count: int, *, first_line: int = 1) -> list[Problem]:
    return [
        Problem("f.yaml", line, 3, f'"bad {line}.example" contains a space', "write the name")
        for line in range(first_line, first_line + count)
    ]


def test_few_problems_have_a_hint_each() -> None:
    lines = list(problem_lines(_problems(20), lists_all=False))
    assert lines[0] == ('f.yaml:1:3: "bad 1.example" contains a space', "write the name")
    assert len(lines) == 20
    assert {hint for _, hint in lines} == {"write the name"}


def test_many_that_are_alike_are_counted_and_have_one_hint() -> None:
    lines = list(problem_lines(_problems(1000), lists_all=False))
    assert len(lines) == 21
    assert [text for text, _ in lines[:20]] == [str(problem) for problem in _problems(20)]
    assert {hint for _, hint in lines[:20]} == {""}
    rest = "f.yaml: … and 980 more like these (lines 21 to 1000; --verbose lists them)"
    assert lines[20] == (rest, "write the name")


def test_one_more_has_one_line_number() -> None:
    (text, _) = list(problem_lines(_problems(21), lists_all=False))[20]
    assert "1 more like these (line 21;" in text


def test_others_stay_where_they_are_with_their_hints() -> None:
    other = Problem("f.yaml", 500, 1, "an entry needs a sign_domain", "add the signing domain")
    lines = list(problem_lines([*_problems(499), other], lists_all=False))
    assert lines[-1] == (str(other), other.hint)
    assert len(lines) == 22


def test_all_are_listed_where_it_is_asked_for() -> None:
    problems = _problems(1000)
    expected = [(str(problem), problem.hint) for problem in problems]
    assert list(problem_lines(problems, lists_all=True)) == expected


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=200))
def test_nothing_is_lost(messages: list[str]) -> None:
    problems = [Problem("f", line, 1, text, "") for line, text in enumerate(messages, 1)]
    lines = [text for text, _ in problem_lines(problems, lists_all=False)]
    counted = [text for text in lines if "…" in text]
    more = sum(int(text.split(" and ")[1].split(" ")[0].replace(",", "")) for text in counted)
    assert len(lines) - len(counted) + more == len(problems)
