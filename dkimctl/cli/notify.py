"""Send notices by `notify` of the config file, after a second look."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dkimctl.cli import next_steps
from dkimctl.cli.checking import CheckProgress
from dkimctl.cli.session import Session
from dkimctl.dns.verdicts import Check, Looks, Verdict, is_good
from dkimctl.errors import DkimctlError, ExitCode, UsageError, naming
from dkimctl.models import Alarm, Registration, RegistrationKey
from dkimctl.names import Selection
from dkimctl.notices import (
    OUR_SECRETS,
    KeyProblem,
    Look,
    Notice,
    after_second_look,
    find_changes,
    first_seen_now,
    is_key_subject,
    notice_document,
    post_notice,
    problem_of,
    run_notice_program,
    subject_of,
)
from dkimctl.rotation.due import Report, State, Step
from dkimctl.settings.config import webhook_url
from dkimctl.settings.values import parse_reference
from dkimctl.text import counted, format_duration

if TYPE_CHECKING:
    from dkimctl.dns.check import CheckPolicy
    from dkimctl.dns.queries import Source

LookAgain = Callable[[Collection[str]], Look]
_Channel = Callable[[Session, bytes], None]

_RUN = "rotate run"
_PROBLEMS = (State.FAILED, State.BLOCKED)
_LEFT_TO_PEOPLE = (Step.REMOVE, State.BY_HAND)  # that a record is to be added is in `check`
_TEST = KeyProblem("dkimctl", "test notice", action="nothing: this is a test")


def require_notify(session: Session, option: str = "--notify") -> None:
    """Raise UsageError unless the config file says how to notify; `option` needs it."""
    if not any(_channels(session)):
        raise UsageError(
            f"{option} needs notify in the config file",
            hint="write `notify: {command: [/path/to/program]}`, or `notify: {webhook: URL}`, into "
            f"{session.config_file}",
        )


def send_notices(
    session: Session, look: Look, look_again: LookAgain, sleep: Callable[[float], None] = time.sleep
) -> ExitCode:
    """Tell what has become worse or better since the last run, if `notify` is configured.

    `look_again` looks once more at some subjects, before there is an alarm of them. What could
    not be told is a warning, and SERVICE; the next run tells it, unless another channel told it.
    Raises LedgerError.
    """
    if not any(_channels(session)):
        return ExitCode.OK
    with session.open_ledger(for_writing=False) as ledger:
        doubtful = first_seen_now(look, ledger.alarms())
    if doubtful:  # a second look at the subjects whose problems are new
        seconds = session.config.notify.recheck.total_seconds()
        what, when = counted(len(doubtful), "new problem"), format_duration(seconds)
        session.reporter.note(f"dkimctl: {what}: looking again in {when}, before a notice")
        sleep(seconds)
        look = after_second_look(look, look_again(doubtful), doubtful)
    with session.lock_account("notify"), session.open_ledger(for_writing=True) as ledger:
        now = datetime.now(UTC)
        notice = find_changes(look, ledger.alarms(), now)
        seen = [alarm for _, alarm in (*notice.new, *notice.still)]
        ledger.replace_alarms(notice.stale, seen)  # first, so that a kill changes no `since`
        if not notice.has_news:
            return ExitCode.OK
        worked = _deliver(session, notice, now)
        if any(worked):
            told = [alarm._replace(told_at=now) for _, alarm in notice.new]
            ledger.replace_alarms(notice.over, told)
    return ExitCode.OK if all(worked) else ExitCode.SERVICE


def send_test_notice(session: Session) -> ExitCode:
    """Send a notice by each channel that is configured; the ledger is not used.

    Its problem is over in the same notice, so that no alarm stays. What was not delivered is a
    warning, and SERVICE. Raises UsageError if no channel is configured.
    """
    require_notify(session, "--test-notice")
    now = datetime.now(UTC)
    alarm = Alarm(_TEST.subject, _TEST.problem, now, now, told_at=now)
    if not all(_deliver(session, Notice(new=[(_TEST, alarm)], over=[alarm]), now)):
        return ExitCode.SERVICE
    session.reporter.note("dkimctl: the test notice was delivered")
    return ExitCode.OK


def _deliver(session: Session, notice: Notice, now: datetime) -> list[bool]:
    """Which of the channels have worked."""
    complete = session.reporter.complete
    document = notice_document(notice, profile=session.profile.name, now=now, complete=complete)
    worked = []
    for channel in _channels(session):
        try:
            channel(session, document)
        except DkimctlError as error:
            message = f"a notice was not delivered: {error.message}"
            session.reporter.warn(message, hint=error.hint, code="notice")
            worked.append(False)
        else:
            worked.append(True)
    return worked


def _channels(session: Session) -> Iterator[_Channel]:
    """The channels that are configured."""
    if session.config.notify.command:
        yield _by_command
    if session.config.notify.webhook:
        yield _by_webhook


def _by_command(session: Session, document: bytes) -> None:
    withheld = OUR_SECRETS | session.config.secret_variables()
    run_notice_program(session.config.notify.command, document, os.environ, withheld=withheld)


def _by_webhook(session: Session, document: bytes) -> None:
    url = session.config.notify.webhook
    if (reference := parse_reference(url)) is not None:  # the URL is a secret from elsewhere
        with naming(url):
            url = webhook_url(session.secrets.read(reference).reveal())
    with session.open_http(url, longest=30.0) as http:
        post_notice(http, url, document)


def require_checks_to_notify(session: Session, saved: str | None, *, expect_absent: bool) -> None:
    """Raise UsageError unless there can be notices of what is checked."""
    for option, is_given in (("--from", saved is not None), ("--expect-absent", expect_absent)):
        if is_given:
            raise UsageError(
                f"--notify cannot be combined with {option}",
                hint="it tells of the registrations in the ledger: remove one of them",
            )
    require_notify(session)


class CheckNotices:
    """Takes in registrations and checks, then tells what changed; the rest is for a second look."""

    def __init__(
        self,
        session: Session,
        source: Source,
        policy: CheckPolicy,
        looks: Looks,
        retired: Mapping[RegistrationKey, str],
    ) -> None:
        self._session = session
        self._source = source
        self._policy = policy._replace(wait=0.0)
        self._looks = looks
        self._retired = retired
        self._seen: set[str] = set()  # subjects
        self._registrations: dict[str, Registration] = {}  # not checked yet, or with a problem
        self._problems: list[KeyProblem] = []

    def watch(self, registrations: Iterable[Registration]) -> Iterator[Registration]:
        """The registrations, which are to be checked."""
        for registration in registrations:
            subject = subject_of(registration.key)
            self._seen.add(subject)
            self._registrations[subject] = registration
            yield registration

    def emit_to(self, emit: Callable[[Check], None]) -> Callable[[Check], None]:
        """A function that takes in a check, and emits it."""

        def emit_both(check: Check) -> None:
            emit(check)
            self._add(check)

        return emit_both

    def send(self) -> ExitCode:
        """Tell what is worse or better, after a second look if a problem is new."""
        return send_notices(self._session, Look(self._problems, self._covers), self._look_again)

    def _add(self, check: Check) -> None:
        if is_good(check.finding.verdict, Verdict.PUBLISHED):
            del self._registrations[subject_of(check.key)]
            return
        selection = (check.sign_domain,)
        action = f"look at the record: {next_steps.command('check-dns', selection)}"
        if check.finding.verdict is Verdict.MISSING:
            publish = next_steps.publish(selection, by_target=self._session.has_dns_targets)
            action = f"publish the record: {publish}, then {next_steps.wait_for(selection)}"
        self._problems.append(problem_of(check, action))

    def _look_again(self, subjects: Collection[str]) -> Look:
        from dkimctl.dns.check import check_publication

        self._problems = []
        self._source.forget()
        check_publication(
            [self._registrations[subject] for subject in sorted(subjects)],
            self._source,
            self._policy,
            self._add,
            progress=CheckProgress(self._session.reporter, self._policy.wanted, may_draw=False),
            looks=self._looks,
            retired=self._retired,
        )
        return Look(self._problems, self._covers)

    def _covers(self, subject: str) -> bool:
        """Whether it was checked, or is a key that the ledger does not have any more."""
        if subject in self._seen:
            return True
        return is_key_subject(subject) and subject not in self._known

    @functools.cached_property
    def _known(self) -> set[str]:
        with self._session.open_ledger(for_writing=False) as ledger:
            return {subject_of(registration.key) for registration in ledger.ours()}


class RunNotices:
    """Tells of the problems of a run. `run_again` is a second look, which may put things right."""

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
        self.report = report  # of the latest run, with what both have done

    def send(self) -> ExitCode:
        """OK, or SERVICE if a notice was not delivered. Raises LedgerError."""
        look = Look(list(_problems(self.report)), self._covers())
        return send_notices(self._session, look, self._look_again)

    def _look_again(self, subjects: Collection[str]) -> Look:
        self.report = self._run_again().after(self.report)
        problems = [problem for problem in _problems(self.report) if problem.subject in subjects]
        return Look(problems, lambda subject: not self._is_unknown(subject))

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
        # Those that wait: retired records, which may still be there.
        waits = (Step.REMOVE, State.WAITING)
        tasks = [task for task in self.report.tasks if (task.step, task.state) == waits]
        waiting = {_subject(task.registration.key.sign_domain) for task in tasks}
        return bool(self.report.unknown) or subject in waiting


def _problems(report: Report) -> Iterator[KeyProblem]:
    for task in report.tasks:
        key, check = task.registration.key, task.check
        if task.state is State.DONE:
            continue
        if check is not None and not is_good(check.finding.verdict, Verdict.PUBLISHED):
            words = (task.registration.sign_domain,)
            if task.error is not None and task.error.hint:
                action = task.error.hint
            elif task.state is State.BY_HAND:
                action = f"publish the record: {next_steps.publish(words)}"
            else:
                action = f"look at the record: {next_steps.command('check-dns', words)}"
            problem = problem_of(check._replace(urgency=task.urgency), action)
            yield problem._replace(detail=task.reason) if task.state in _PROBLEMS else problem
        elif task.state in _PROBLEMS or (task.step, task.state) == _LEFT_TO_PEOPLE:
            subject, what = _subject(key.sign_domain), f"{task.step}: {task.state}"
            action = task.error.hint if task.error else ""
            if task.state is State.BY_HAND:
                retired = next_steps.rotate_retired((task.registration.sign_domain,))
                action = f"remove the record of {task.registration.selector}: `{retired}`"
            yield KeyProblem(subject, what, task.urgency, task.reason, action, key=key)
    for error in report.errors:
        yield KeyProblem(_RUN, error.code, detail=error.message, action=error.hint)


def _subjects(registrations: Iterable[Registration]) -> set[str]:
    keys = [registration.key for registration in registrations]
    return {subject_of(key) for key in keys} | {_subject(key.sign_domain) for key in keys}


def _subject(domain: str) -> str:
    return f"rotation of {domain}"
