"""Notices of what `rotate run` finds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from dkimctl.cli.notices.sending import send_notices
from dkimctl.cli.output import next_steps
from dkimctl.cli.session import Session
from dkimctl.dns.verdicts import Verdict, is_good
from dkimctl.errors import ExitCode
from dkimctl.ledger.selection import Selection
from dkimctl.models.registration import Registration
from dkimctl.publication.notices.problems import (
    Look,
    Problem,
    is_key_subject,
    problem_of,
    subject_of,
)
from dkimctl.rotation.run.report import Report, State, Step, Task

_RUN = "rotate run"
_PROBLEMS = (State.FAILED, State.BLOCKED)
_LEFT_TO_PEOPLE = (Step.REMOVE, State.BY_HAND)  # that a record is to be added is in `check`


class RunNotices:
    """Tells of the problems of a run. `run_again` is a second look, which may put things right.

    `report` is that of the latest run, with what both have done.
    """

    def __init__(
        self,
        session: Session,
        selection: Selection,
        report: Report,
        run_again: Callable[[], Report],
    ) -> None:
        self._session = session
        self._selection = selection
        self._run_again = run_again
        self.report = report

    def send(self) -> ExitCode:
        """OK, or SERVICE if a notice was not delivered. Raises LedgerError."""
        look = Look(list(_problems(self.report)), self._covers())
        return send_notices(self._session, look, self._look_again)

    def _look_again(self, subjects: Collection[str]) -> Look:
        self.report = self._run_again().after(self.report)
        found = [one for one in _problems(self.report) if one.subject in subjects]
        return Look(found, lambda subject: not self._is_unknown(subject))

    def _covers(self) -> Callable[[str], bool]:
        """Whether a run has looked at a subject, or nothing in the ledger has it any more."""
        with self._session.open_ledger(for_writing=False) as ledger:
            every = list(ledger.ours())
        known = _subjects(every) | {_RUN}
        ours = _subjects(self._selection.pick(every)) | {_RUN}

        def covers(subject: str) -> bool:
            if subject not in known:
                return True
            return subject in ours and not self._is_unknown(subject)

        return covers

    def _is_unknown(self, subject: str) -> bool:
        """Whether the service or DNS could not be asked about it, so that no alarm is over."""
        if subject == _RUN:
            return False
        if is_key_subject(subject):
            return Step.PUBLISH in self.report.unknown
        return bool(self.report.unknown) or subject in self._waiting()

    def _waiting(self) -> set[str]:
        """The subjects whose retired records may still be there."""
        waits = (Step.REMOVE, State.WAITING)
        tasks = [task for task in self.report.tasks if (task.step, task.state) == waits]
        return {_subject(task.registration.key.sign_domain) for task in tasks}


def _problems(report: Report) -> Iterator[Problem]:
    for task in report.tasks:
        key, check = task.registration.key, task.check
        if task.state is State.DONE:
            continue
        if check is not None and not is_good(check.finding.verdict, Verdict.PUBLISHED):
            problem = problem_of(check._replace(urgency=task.urgency), _action_to_publish(task))
            yield problem._replace(detail=task.reason) if task.state in _PROBLEMS else problem
        elif task.state in _PROBLEMS or (task.step, task.state) == _LEFT_TO_PEOPLE:
            subject, what = _subject(key.sign_domain), f"{task.step}: {task.state}"
            yield Problem(subject, what, task.urgency, task.reason, _other_action(task), key=key)
    for error in report.errors:
        yield Problem(_RUN, error.code, detail=error.message, action=error.hint)


def _other_action(task: Task) -> str:
    """What to do next, where no record is to be published."""
    if task.state is State.BY_HAND:
        retired = next_steps.rotate_retired((task.registration.sign_domain,))
        return f"remove the record of {task.registration.selector}: `{retired}`"
    return task.error.hint if task.error else ""


def _action_to_publish(task: Task) -> str:
    if task.error is not None and task.error.hint:
        return task.error.hint
    words = (task.registration.sign_domain,)
    if task.state is State.BY_HAND:
        return f"publish the record: {next_steps.publish(words)}"
    return f"look at the record: {next_steps.check(words)}"


def _subjects(registrations: Iterable[Registration]) -> set[str]:
    keys = [one.key for one in registrations]
    return {subject_of(key) for key in keys} | {_subject(key.sign_domain) for key in keys}


def _subject(domain: str) -> str:
    return f"rotation of {domain}"
