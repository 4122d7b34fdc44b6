"""The JSON document that tells of changes; docs/timers.md describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from dkimctl.dns.verdicts import Urgency
from dkimctl.models.alarm import Alarm
from dkimctl.publication.notices.changes import Notice
from dkimctl.publication.notices.problems import Problem
from dkimctl.text.escaping import few, printable
from dkimctl.text.grouping import counted, listed, without_names

VERSION = 1
# In each list, since a webhook may refuse a larger document: items, and their subjects together.
MAX_ITEMS, MAX_SUBJECTS = 500, 2000
_MAX_NAMED = 3  # subjects of an item, in the summary
_MAX_TEXT = 1000  # characters
_URGENCIES = tuple(Urgency)  # the most urgent first

_Pair = tuple[Problem, Alarm]
_One = TypeVar("_One")


def notice_document(
    notice: Notice,
    *,
    profile: str,
    now: datetime,
    complete: Callable[[str], str] = lambda text: text,
) -> bytes:
    """The document as one line of printable ASCII; its texts are printable as well.

    `complete` completes the commands in what to do next.
    """
    new, still = _grouped(notice.new), _grouped(notice.still)
    over = _alike(notice.over, lambda alarm: (alarm.problem, alarm.first_seen))
    counts = {"new": len(notice.new), "over": len(notice.over), "still": len(notice.still)}
    document = {
        "version": VERSION,
        "time": _written(now),
        "profile": profile,
        "text": _shown(_summary(new, over, counts)),
        "counts": counts,
        "new": list(_problem_items(new, complete)),
        "over": list(_items(over)),
        "still": list(_problem_items(still, complete)),
    }
    return f"{json.dumps(document)}\n".encode("ascii")


def _summary(
    new: Sequence[Sequence[_Pair]], over: Sequence[Sequence[Alarm]], counts: Mapping[str, int]
) -> str:
    """Such as `dkimctl: 1 new problem: example.com s1 (missing); 1 problem is over: …`."""
    parts = []
    if new:
        names = few([_named([alarm for _, alarm in alike]) for alike in new])
        parts.append(f"{counted(counts['new'], 'new problem')}: {names}")
    if over:
        names = few([_named(alike) for alike in over])
        parts.append(f"{counted(counts['over'], 'problem')} over: {names}")
    if counts["still"]:
        parts.append(f"{counted(counts['still'], 'earlier problem')} not solved yet")
    return f"dkimctl: {'; '.join(parts)}"


def _named(alike: Sequence[Alarm]) -> str:
    subjects = listed([alarm.subject for alarm in alike], most=_MAX_NAMED)
    return f"{subjects} ({alike[0].problem})"


def _grouped(pairs: Sequence[_Pair]) -> list[list[_Pair]]:
    """Problems that are alike but for the names of their keys; the most urgent first."""
    ordered = sorted(pairs, key=lambda pair: (_URGENCIES.index(pair[0].urgency), pair[0].subject))
    return _alike(ordered, _cause)


def _cause(pair: _Pair) -> Hashable:
    problem, alarm = pair
    texts = (_nameless(problem, text) for text in (problem.detail, problem.action))
    return problem.problem, problem.urgency, alarm.first_seen, *texts


def _nameless(problem: Problem, text: str) -> str:
    text = text[:_MAX_TEXT]
    return without_names(text, *problem.key) if problem.key else text


def _alike(items: Iterable[_One], kind: Callable[[_One], Hashable]) -> list[list[_One]]:
    groups: dict[Hashable, list[_One]] = {}
    for item in items:
        groups.setdefault(kind(item), []).append(item)
    return list(groups.values())


def _problem_items(
    groups: Sequence[Sequence[_Pair]], complete: Callable[[str], str]
) -> Iterator[dict[str, object]]:
    items = _items([[alarm for _, alarm in alike] for alike in groups])
    for item, alike in zip(items, groups, strict=False):  # as many items as may be in the list
        problems = [problem for problem, _ in alike]
        yield item | {
            "urgency": problems[0].urgency,
            "detail": _shown(_common(problems, [one.detail for one in problems])),
            "action": _shown(complete(_common(problems, [one.action for one in problems]))),
        }


def _common(problems: Sequence[Problem], texts: Sequence[str]) -> str:
    """The text of all, with placeholders where names differ."""
    return texts[0] if len(set(texts)) == 1 else _nameless(problems[0], texts[0])


def _items(groups: Sequence[Sequence[Alarm]]) -> Iterator[dict[str, object]]:
    left = MAX_SUBJECTS
    for alike in groups[:MAX_ITEMS]:
        first = alike[0]
        subjects = [_shown(alarm.subject) for alarm in alike[:left]]
        left -= len(subjects)
        yield {
            "subject": _shown(first.subject),
            "problem": _shown(first.problem),
            "since": _written(first.first_seen),
            "count": len(alike),
            "subjects": subjects,
        }


def _shown(text: str) -> str:
    cut = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
    return printable(cut)


def _written(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
