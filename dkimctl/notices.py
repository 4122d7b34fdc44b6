"""Problems to tell people of, once when they begin and once when they are over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dkimctl.client.failures import origin_of
from dkimctl.dns.verdicts import Check, Urgency, Verdict
from dkimctl.errors import ServiceError
from dkimctl.models import Alarm, RegistrationKey, written_time
from dkimctl.text import TIMERS_DOC, counted, few, format_duration, listed, printable, without_names

if TYPE_CHECKING:
    from dkimctl.client.http import HttpClient

_BEGINNINGS = {
    Urgency.SIGNING: "signing now without DNS: ",
    Urgency.PARTLY: "signing now, and only some servers have the record: ",
    Urgency.SOON: "signing starts soon: ",
}
# In each list, since a webhook may refuse a larger document: items, and their subjects together.
MAX_ITEMS, MAX_SUBJECTS = 500, 2000
_MAX_NAMED = 3  # subjects of an item, in the summary
_MAX_TEXT = 1000  # characters

_Pair: TypeAlias = "tuple[KeyProblem | None, Alarm]"  # None: the alarm is over
# The program has no use for them.
OUR_SECRETS = frozenset((
    "DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN", "DKIMCTL_SERVICE_PASSPHRASE",
    "DKIMCTL_SERVICE_DATABASE",
))  # fmt: skip


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
        subject_of(check.key), f"{_BEGINNINGS.get(check.urgency, '')}{verdict}", check.urgency,
        check.finding.reason, action, is_unknown=verdict is Verdict.NO_ANSWER, key=check.key,
    )  # fmt: skip


class Notice(NamedTuple):
    """What to tell: problems, with the alarm of each, and alarms."""

    new: Sequence[tuple[KeyProblem, Alarm]] = ()
    over: Sequence[Alarm] = ()
    still: Sequence[tuple[KeyProblem, Alarm]] = ()
    stale: Sequence[Alarm] = ()  # to forget: they are over, and nobody was notified


def first_seen_now(look: Look, alarms: Iterable[Alarm]) -> set[str]:
    """The subjects with a problem of which there is no alarm: they need a second look."""
    known = {_name(alarm) for alarm in alarms}
    return {problem.subject for problem in look.problems if _name(problem) not in known}


def after_second_look(first: Look, second: Look, doubtful: set[str]) -> Look:
    """What two looks have found; `second` was at the `doubtful` subjects, as far as it could."""
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
    with_alarm = [(problem, known.get(name, Alarm(*name, now, now))._replace(looked_at=now))
                  for name, problem in problems.items()]  # fmt: skip
    gone = [alarm for name, alarm in known.items() if name not in problems
            and alarm.subject not in unknown and look.covers(alarm.subject)]  # fmt: skip
    return Notice(
        new=[pair for pair in with_alarm if not pair[1].told_at],
        over=[alarm for alarm in gone if alarm.told_at],
        still=[pair for pair in with_alarm if pair[1].told_at],
        stale=[alarm for alarm in gone if not alarm.told_at],
    )


def _name(item: KeyProblem | Alarm) -> tuple[str, str]:
    return item.subject, item.problem


def notice_document(
    notice: Notice, *, profile: str, now: datetime,
    complete: Callable[[str], str] = lambda text: text,
    owner_of: Callable[[str], str] = lambda sign_domain: "",
) -> bytes:  # fmt: skip
    """One line of printable ASCII; `complete` completes the commands in what to do next."""

    def owner(alarm: Alarm) -> str:
        domain = next((word for word in alarm.subject.split() if "." in word), "")
        return owner_of(domain) if domain else ""

    def grouped(pairs: Iterable[tuple[KeyProblem, Alarm]]) -> list[list[_Pair]]:
        order = {urgency: number for number, urgency in enumerate(Urgency)}  # most urgent first
        ordered = sorted(pairs, key=lambda pair: (order[pair[0].urgency], pair[0].subject))
        return _grouped(ordered, owner)

    new, still = grouped(notice.new), grouped(notice.still)
    over = _grouped([(None, alarm) for alarm in notice.over], owner)
    # Such as `dkimctl: 1 new problem: example.com s1 (missing); 1 problem over: …`.
    parts = []
    if new:
        parts.append(f"{counted(len(notice.new), 'new problem')}: {_summary(new)}")
    if over:
        parts.append(f"{counted(len(notice.over), 'problem')} over: {_summary(over)}")
    if still:
        parts.append(f"{counted(len(notice.still), 'earlier problem')} not solved yet")
    document: dict[str, object] = {
        "version": 1, "time": written_time(now), "profile": profile,
        "text": _shown(f"dkimctl: {'; '.join(parts)}"),
        "counts": {"new": len(notice.new), "over": len(notice.over), "still": len(notice.still)},
    }  # fmt: skip
    for name, groups in (("new", new), ("over", over), ("still", still)):
        document[name] = list(_items(groups, complete, owner))
    return f"{json.dumps(document)}\n".encode("ascii")


def _grouped(pairs: Sequence[_Pair], owner: Callable[[Alarm], str]) -> list[list[_Pair]]:
    """Problems, or alarms alone, of one owner that are alike but for the names of their keys."""
    groups: dict[Hashable, list[_Pair]] = {}
    for problem, alarm in pairs:
        kind: list[Hashable] = [alarm.problem, alarm.first_seen, owner(alarm)]
        if problem is not None:
            texts = (_nameless(problem, text) for text in (problem.detail, problem.action))
            kind += [problem.urgency, *texts]
        groups.setdefault(tuple(kind), []).append((problem, alarm))
    return list(groups.values())


def _summary(groups: Sequence[Sequence[_Pair]]) -> str:
    return few([
        f"{listed([alarm.subject for _, alarm in alike], most=_MAX_NAMED)} ({alike[0][1].problem})"
        for alike in groups
    ])  # fmt: skip


def _items(
    groups: Sequence[Sequence[_Pair]], complete: Callable[[str], str], owner: Callable[[Alarm], str]
) -> Iterator[dict[str, object]]:
    left = MAX_SUBJECTS
    for alike in groups[:MAX_ITEMS]:
        problem, alarm = alike[0]
        subjects = [_shown(alarm.subject) for _, alarm in alike[:left]]
        left -= len(subjects)
        item: dict[str, object] = {
            "subject": _shown(alarm.subject), "problem": _shown(alarm.problem),
            "since": written_time(alarm.first_seen), "count": len(alike), "subjects": subjects,
            "owner": _shown(owner(alarm)) or None,
        }  # fmt: skip
        if problem is not None:
            detail, action = problem.detail, problem.action
            if any(other and other.detail != detail for other, _ in alike):
                detail = _nameless(problem, detail)
            if any(other and other.action != action for other, _ in alike):
                action = _nameless(problem, action)
            item |= {"urgency": problem.urgency, "detail": _shown(detail)}
            item["action"] = _shown(complete(action))
        yield item


def _nameless(problem: KeyProblem, text: str) -> str:
    text = text[:_MAX_TEXT]
    return without_names(text, *problem.key) if problem.key else text


def _shown(text: str) -> str:
    return printable(text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…")


def run_notice_program(
    words: Sequence[str], document: bytes, *, withheld: Container[str] = OUR_SECRETS,
    seconds: float = 30.0,
) -> None:  # fmt: skip
    """Run the program with a JSON document on standard input; its output is discarded.

    It gets no variable that is `withheld`. After `seconds`, or on an interruption, it is killed
    together with the programs that it has started. Raises ServiceError unless it ends with
    status 0. Its arguments, which may hold a token, are in no error.
    """
    program = f'"{printable(words[0])}"'
    try:
        # A file, since a program that does not read a pipe, or closes it, would disturb us.
        with tempfile.TemporaryFile() as file:
            file.write(document)
            file.seek(0)
            process = subprocess.Popen(  # noqa: S603 - the user's own program, from the config file
                words, stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name not in withheld},
                start_new_session=True,
            )  # fmt: skip
    except (OSError, ValueError) as error:  # ValueError: a null character in a word
        text = f"cannot run {program} to notify: {getattr(error, 'strerror', None) or 'invalid'}"
        raise ServiceError(text, hint="check notify: command in the config file") from None
    try:
        status = process.wait(seconds)
        how = f"{'was killed by signal' if status < 0 else 'failed with exit status'} {abs(status)}"
    except subprocess.TimeoutExpired:
        status, how = 1, f"did not end within {format_duration(seconds)}, and was killed"
    finally:
        if process.poll() is None:  # else the ID may be that of another process now
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)  # its process group, which has its ID
            process.wait()
    if status:
        hint = "run it by hand to see why, with the document of "
        raise ServiceError(f"{program} {how}", hint=f"{hint}{TIMERS_DOC}#notices as its input")


def post_notice(http: HttpClient, url: str, document: bytes) -> None:
    """Send a JSON document to a webhook. Raises ServiceError unless it answers 2xx.

    No error has more of the URL, which may hold a token, than its scheme, host and port.
    """
    from dkimctl.client.http import HttpRequest  # imports httpx

    hint = "check notify: webhook in the config file"
    request = HttpRequest(
        "POST", url, None, "application/json", document, max_body=2**20, has_secret_url=True
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
