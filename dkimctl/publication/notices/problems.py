"""Problems to tell people of, and what one look found."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dkimctl.dns.verdicts import Check, Urgency, Verdict
from dkimctl.models.registration import RegistrationKey

_BEGINNINGS = {
    Urgency.SIGNING: "signing now without DNS: ",
    Urgency.PARTLY: "signing now, and only some servers have the record: ",
    Urgency.SOON: "signing starts soon: ",
    Urgency.NONE: "",
}


class Problem(NamedTuple):
    """One thing that is wrong.

    `subject` is a key (see `subject_of`), or such as `zone example.com` or `service`. It and
    `problem`, which has no dates and numbers that change from day to day, identify an alarm;
    `detail` may change. `action` is what to do next. `is_unknown`: nothing is known of the subject
    now, so its other alarms stay. `key` is the one that it is about, if any.
    """

    subject: str
    problem: str
    urgency: Urgency = Urgency.NONE
    detail: str = ""
    action: str = ""
    is_unknown: bool = False
    key: RegistrationKey | None = None


class Look(NamedTuple):
    """What was found in one run. `covers` tells whether it has looked at a subject."""

    problems: Sequence[Problem]
    covers: Callable[[str], bool]


def subject_of(key: RegistrationKey) -> str:
    """The subject of problems with a key, such as `example.com s20270101`."""
    return " ".join(filter(None, key))


def is_key_subject(subject: str) -> bool:
    """Whether it is a key: its first word is a signing domain, which has a dot."""
    return "." in subject.partition(" ")[0]


def problem_of(check: Check, action: str = "") -> Problem:
    """The problem of a check whose verdict is not good."""
    verdict = check.finding.verdict
    return Problem(
        subject_of(check.key),
        f"{_BEGINNINGS[check.urgency]}{verdict}",
        check.urgency,
        check.finding.reason,
        action,
        is_unknown=verdict is Verdict.NO_ANSWER,
        key=check.key,
    )
