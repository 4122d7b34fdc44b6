"""What has become worse or better since people were last told."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from dkimctl.models.alarm import Alarm
from dkimctl.publication.notices.problems import Look, Problem


class Notice(NamedTuple):
    """What to tell: `new` and `still` are problems, with the alarm of each; `over` are alarms.

    `stale` are alarms to forget without a word: they are over, and were never told.
    """

    new: Sequence[tuple[Problem, Alarm]] = ()
    over: Sequence[Alarm] = ()
    still: Sequence[tuple[Problem, Alarm]] = ()
    stale: Sequence[Alarm] = ()

    @property
    def has_news(self) -> bool:
        return bool(self.new or self.over)


def first_seen_now(look: Look, alarms: Iterable[Alarm]) -> set[str]:
    """The subjects with a problem of which there is no alarm: they need a second look."""
    known = {_name(alarm) for alarm in alarms}
    return {problem.subject for problem in look.problems if _name(problem) not in known}


def after_second_look(first: Look, second: Look, doubtful: set[str]) -> Look:
    """What two looks have found; `second` was at the `doubtful` subjects of `first` alone.

    What `second` could not look at stays as `first` has found it.
    """
    again = [problem for problem in second.problems if problem.subject in doubtful]
    seen = {subject for subject in doubtful if second.covers(subject)}
    seen |= {problem.subject for problem in again}
    others = [problem for problem in first.problems if problem.subject not in seen]
    return Look([*others, *again], first.covers)


def find_changes(look: Look, alarms: Iterable[Alarm], now: datetime) -> Notice:
    """Compare what was found with the `alarms` of earlier runs."""
    known = {_name(alarm): alarm for alarm in alarms}
    found = {_name(problem): problem for problem in look.problems}
    unknown = {problem.subject for problem in look.problems if problem.is_unknown}
    with_alarm = [
        (problem, known.get(name, Alarm(*name, now, now))._replace(looked_at=now))
        for name, problem in found.items()
    ]
    gone = [
        alarm
        for name, alarm in known.items()
        if name not in found and alarm.subject not in unknown and look.covers(alarm.subject)
    ]
    return Notice(
        new=[pair for pair in with_alarm if pair[1].told_at is None],
        over=[alarm for alarm in gone if alarm.told_at is not None],
        still=[pair for pair in with_alarm if pair[1].told_at is not None],
        stale=[alarm for alarm in gone if alarm.told_at is None],
    )


def _name(item: Problem | Alarm) -> tuple[str, str]:
    return item.subject, item.problem
