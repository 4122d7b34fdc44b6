"""What is told, run by run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dkimctl.models import Alarm
from dkimctl.notices import KeyProblem, Look, after_second_look, find_changes, first_seen_now

DAY = timedelta(days=1)
NOON = datetime(2027, 1, 5, 12, tzinfo=UTC)
MISSING = KeyProblem("example.com s1", "missing")
OTHER = KeyProblem("example.org s1", "missing")
NO_ANSWER = KeyProblem("example.com s1", "no answer", is_unknown=True)
TOLD = Alarm(*MISSING[:2], first_seen=NOON - DAY, looked_at=NOON - DAY, told_at=NOON - DAY)
UNTOLD = TOLD._replace(told_at=None)


def look(*problems: KeyProblem, covers: bool = True) -> Look:
    return Look(problems, lambda subject: covers)


def test_a_problem_without_an_alarm_needs_a_second_look():
    assert first_seen_now(look(MISSING, OTHER), [TOLD]) == {OTHER.subject}
    assert first_seen_now(look(MISSING), [UNTOLD]) == set()  # it had its second look


def test_another_problem_of_the_same_subject_needs_a_second_look_as_well():
    worse = MISSING._replace(problem="signing now without DNS: missing")
    assert first_seen_now(look(worse), [TOLD]) == {MISSING.subject}


def test_what_is_known_needs_no_second_look_to_remain():
    confirmed = after_second_look(look(MISSING, OTHER), look(), {OTHER.subject})
    assert list(confirmed.problems) == [MISSING]


def test_the_second_look_may_find_another_problem():
    second = look(NO_ANSWER)
    confirmed = after_second_look(look(MISSING), second, {MISSING.subject})
    assert list(confirmed.problems) == [NO_ANSWER]


def test_what_the_second_look_could_not_look_at_remains():
    second = look(covers=False)
    confirmed = after_second_look(look(MISSING), second, {MISSING.subject})
    assert list(confirmed.problems) == [MISSING]


def test_what_nobody_was_told_of_is_told_with_its_first_date():
    notice = find_changes(look(MISSING), [UNTOLD], NOON)
    assert notice.new == [(MISSING, UNTOLD._replace(looked_at=NOON))]


def test_a_problem_that_is_gone_is_over():
    notice = find_changes(look(OTHER), [TOLD], NOON)
    assert notice.over == [TOLD]
    assert [problem for problem, _ in notice.new] == [OTHER]


def test_the_end_of_what_nobody_was_told_of_is_not_told():
    notice = find_changes(look(), [UNTOLD], NOON)
    assert notice.stale == [UNTOLD]
    assert not notice.has_news


def test_without_an_answer_no_alarm_of_the_subject_is_over():
    silent = Alarm(*NO_ANSWER[:2], NOON - DAY, NOON - DAY, NOON - DAY)
    notice = find_changes(look(NO_ANSWER), [TOLD, silent], NOON)
    assert not notice.has_news
    answered = find_changes(look(MISSING), [TOLD, silent], NOON)
    assert answered.over == [silent]


def test_a_problem_that_becomes_worse_is_told():
    worse = MISSING._replace(problem="signing now without DNS: missing")
    notice = find_changes(look(worse), [TOLD], NOON)
    assert [problem for problem, _ in notice.new] == [worse]
    assert notice.over == [TOLD]
