"""Problems to tell people of, once when they begin and once when they are over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dkimctl.client.failures import origin_of
from dkimctl.dns.verdicts import Check, Urgency, Verdict
from dkimctl.errors import ServiceError
from dkimctl.models import Alarm, RegistrationKey
from dkimctl.text import counted, few, format_duration, listed, printable, without_names

if TYPE_CHECKING:
    from dkimctl.client.http import HttpClient

_BEGINNINGS = {
    Urgency.SIGNING: "signing now without DNS: ",
    Urgency.PARTLY: "signing now, and only some servers have the record: ",
    Urgency.SOON: "signing starts soon: ",
    Urgency.NONE: "",
}
VERSION = 1
# In each list, since a webhook may refuse a larger document: items, and their subjects together.
MAX_ITEMS, MAX_SUBJECTS = 500, 2000
_MAX_NAMED = 3  # subjects of an item, in the summary
_MAX_TEXT = 1000  # characters
_URGENCIES = tuple(Urgency)  # the most urgent first

_Pair = tuple["KeyProblem", Alarm]
_Item = TypeVar("_Item")
# The program has no use for them.
OUR_SECRETS = frozenset(
    (
        "DKIMCTL_CLIENT_SECRET",
        "DKIMCTL_ACCESS_TOKEN",
        "DKIMCTL_SERVICE_PASSPHRASE",
        "DKIMCTL_SERVICE_DATABASE",
    )
)
_RUN_IT = "run it by hand to see why, with the document in docs/timers.md as its input"
_MAX_BODY = 1024 * 1024  # bytes of the response, which is not read any further


class KeyProblem(NamedTuple):
    """One thing that is wrong; subject and problem, which stay the same, identify an alarm."""

    subject: str  # a key (see `subject_of`), or such as `zone example.com` or `service`
    problem: str  # without dates and numbers that change from day to day
    urgency: Urgency = Urgency.NONE
    detail: str = ""
    action: str = ""  # what to do next
    is_unknown: bool = False  # nothing is known of the subject now, so its other alarms stay
    key: RegistrationKey | None = None  # that it is about, if any


class Look(NamedTuple):
    """What was found in one run."""

    problems: Sequence[KeyProblem]
    covers: Callable[[str], bool]  # whether it has looked at a subject


def subject_of(key: RegistrationKey) -> str:
    """The subject of problems with a key, such as `example.com s20270101`."""
    return " ".join(filter(None, key))


def is_key_subject(subject: str) -> bool:
    """Whether it is a key: its first word is a signing domain, which has a dot."""
    return "." in subject.partition(" ")[0]


def problem_of(check: Check, action: str = "") -> KeyProblem:
    """The problem of a check whose verdict is not good."""
    verdict = check.finding.verdict
    return KeyProblem(
        subject_of(check.key),
        f"{_BEGINNINGS[check.urgency]}{verdict}",
        check.urgency,
        check.finding.reason,
        action,
        is_unknown=verdict is Verdict.NO_ANSWER,
        key=check.key,
    )


class Notice(NamedTuple):
    """What to tell: problems, with the alarm of each, and alarms."""

    new: Sequence[tuple[KeyProblem, Alarm]] = ()
    over: Sequence[Alarm] = ()
    still: Sequence[tuple[KeyProblem, Alarm]] = ()
    stale: Sequence[Alarm] = ()  # to forget without a word: they are over, and were never told

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
    problems = {_name(problem): problem for problem in look.problems}
    unknown = {problem.subject for problem in look.problems if problem.is_unknown}
    with_alarm = [
        (problem, known.get(name, Alarm(*name, now, now))._replace(looked_at=now))
        for name, problem in problems.items()
    ]
    gone = [
        alarm
        for name, alarm in known.items()
        if name not in problems and alarm.subject not in unknown and look.covers(alarm.subject)
    ]
    return Notice(
        new=[pair for pair in with_alarm if pair[1].told_at is None],
        over=[alarm for alarm in gone if alarm.told_at is not None],
        still=[pair for pair in with_alarm if pair[1].told_at is not None],
        stale=[alarm for alarm in gone if alarm.told_at is None],
    )


def _name(item: KeyProblem | Alarm) -> tuple[str, str]:
    return item.subject, item.problem


def notice_document(
    notice: Notice,
    *,
    profile: str,
    now: datetime,
    complete: Callable[[str], str] = lambda text: text,
) -> bytes:
    """One line of printable ASCII; `complete` completes the commands in what to do next."""
    new, still = _grouped(notice.new), _grouped(notice.still)
    over = _alike(notice.over, lambda alarm: (alarm.problem, alarm.first_seen))
    counts = {"new": len(notice.new), "over": len(notice.over), "still": len(notice.still)}
    # Such as `dkimctl: 1 new problem: example.com s1 (missing); 1 problem over: …`.
    parts = []
    if new:
        names = few([_named([alarm for _, alarm in alike]) for alike in new])
        parts.append(f"{counted(counts['new'], 'new problem')}: {names}")
    if over:
        names = few([_named(alike) for alike in over])
        parts.append(f"{counted(counts['over'], 'problem')} over: {names}")
    if counts["still"]:
        parts.append(f"{counted(counts['still'], 'earlier problem')} not solved yet")
    document = {
        "version": VERSION,
        "time": _written(now),
        "profile": profile,
        "text": _shown(f"dkimctl: {'; '.join(parts)}"),
        "counts": counts,
        "new": list(_problem_items(new, complete)),
        "over": list(_items(over)),
        "still": list(_problem_items(still, complete)),
    }
    return f"{json.dumps(document)}\n".encode("ascii")


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


def _nameless(problem: KeyProblem, text: str) -> str:
    text = text[:_MAX_TEXT]
    return without_names(text, *problem.key) if problem.key else text


def _alike(items: Iterable[_Item], kind: Callable[[_Item], Hashable]) -> list[list[_Item]]:
    groups: dict[Hashable, list[_Item]] = {}
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
            "detail": _shown(_common(problems, [problem.detail for problem in problems])),
            "action": _shown(complete(_common(problems, [problem.action for problem in problems]))),
        }


def _common(problems: Sequence[KeyProblem], texts: Sequence[str]) -> str:
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


def run_notice_program(
    words: Sequence[str],
    document: bytes,
    environ: Mapping[str, str],
    *,
    withheld: Container[str] = OUR_SECRETS,
    seconds: float = 30.0,
) -> None:
    """Run the program with a JSON document on standard input; after `seconds`, it is killed.

    It gets all of `environ` but what is `withheld`, which are the names of variables with secrets.
    Raises ServiceError unless it ends with status 0. Its arguments, which may hold a token, are in
    no error.
    """
    program = f'"{printable(words[0])}"'
    environment = {name: value for name, value in environ.items() if name not in withheld}
    try:
        status = run_program(words, document, seconds=seconds, environment=environment)
    except (OSError, ValueError) as error:  # ValueError: a null character in a word
        reason = getattr(error, "strerror", None) or "invalid"
        raise ServiceError(
            f"cannot run {program} to notify: {reason}",
            hint="check notify: command in the config file",
        ) from None
    if status is None:
        limit = format_duration(seconds)
        raise ServiceError(f"{program} did not end within {limit}, and was killed", hint=_RUN_IT)
    if status != 0:
        raise ServiceError(f"{program} {_ended(status)}", hint=_RUN_IT)


def _ended(status: int) -> str:
    if status > 0:
        return f"failed with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def post_notice(http: HttpClient, url: str, document: bytes) -> None:
    """Send a JSON document to a webhook. Raises ServiceError unless it answers 2xx.

    No error has more of the URL, which may hold a token, than its scheme, host and port.
    """
    from dkimctl.client.http import HttpRequest  # imports httpx

    hint = "check notify: webhook in the config file"
    request = HttpRequest(
        "POST", url, None, "application/json", document, max_body=_MAX_BODY, has_secret_url=True
    )
    try:
        status = http.send(request).status
    except ServiceError as error:
        # With another hint: it may name an option that does not set this URL.
        raise ServiceError(f"the webhook failed: {error.message}", hint=hint) from None
    if not 200 <= status < 300:
        if status < 400:
            hint = "redirects are not followed: write the URL it leads to"
        raise ServiceError(f"the webhook at {origin_of(url)} answered {status}", hint=hint)


def run_program(
    words: Sequence[str], data: bytes, *, seconds: float, environment: Mapping[str, str]
) -> int | None:
    """The exit status of a program that gets `data` on standard input; None if time ran out.

    Negative: the number of the signal that ended it. Its output is discarded. When time runs out,
    or on an interruption, it is ended together with the programs that it has started. Raises
    OSError if it cannot be started.
    """
    # A file, since a program that does not read a pipe, or closes it, would disturb us.
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        process = subprocess.Popen(  # noqa: S603 - the user's own program, from the config file
            words,
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:  # else the ID may be that of another process now
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)  # its process group, which has its ID
            process.wait()
