"""Send notices by `notify` of the config file, after a second look."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dkimctl import notices
from dkimctl.cli import next_steps
from dkimctl.cli.checking import CheckProgress
from dkimctl.cli.session import Session
from dkimctl.dns.check import CheckPolicy, check_publication
from dkimctl.dns.queries import Source
from dkimctl.dns.verdicts import Check, Looks, Verdict, is_good
from dkimctl.errors import DkimctlError, ExitCode, UsageError, naming
from dkimctl.models import Alarm, Registration, RegistrationKey
from dkimctl.names import Selection
from dkimctl.notices import KeyProblem, Look, Notice, is_key_subject, problem_of, subject_of
from dkimctl.rotation.due import Report, State, Step
from dkimctl.settings.config import webhook_url
from dkimctl.settings.values import is_reference
from dkimctl.text import counted, format_duration

_PROBLEMS, _WAITING = (State.FAILED, State.BLOCKED), (Step.REMOVE, State.WAITING)
_TEST = KeyProblem("dkimctl", "test notice", action="nothing: this is a test")


def is_configured(session: Session) -> bool:
    return bool(session.config.notify.command or session.config.notify.webhook)


def require_notify(session: Session, option: str = "--notify") -> None:
    """Raise UsageError unless the config file says how to notify; `option` needs it."""
    if not is_configured(session):
        hint = "write `notify: {command: [/path/to/program]}`, or `notify: {webhook: URL}`, into "
        hint += str(session.config_file)
        raise UsageError(f"{option} needs notify in the config file", hint=hint)


def send_notices(
    session: Session, look: Look, look_again: Callable[[Collection[str]], Look]
) -> ExitCode:
    """Send a notice if problems began or ended since the last run, and `notify` is configured.

    `look_again` looks once more at some subjects, before there is an alarm of them. A notice that
    could not be delivered is a warning, and SERVICE; the next run sends it again, unless another
    channel has. Raises LedgerError.
    """
    if not is_configured(session):
        return ExitCode.OK
    with session.open_ledger(for_writing=False) as ledger:
        doubtful = notices.first_seen_now(look, ledger.alarms())
    if doubtful:  # a second look at the subjects whose problems are new
        seconds = session.config.notify.recheck.total_seconds()
        what, when = counted(len(doubtful), "new problem"), format_duration(seconds)
        session.reporter.note(f"dkimctl: {what}: checking again in {when}, before a notice is sent")
        time.sleep(seconds)
        look = notices.after_second_look(look, look_again(doubtful), doubtful)
    with session.lock_account("notify"), session.open_ledger(for_writing=True) as ledger:
        now = datetime.now(UTC)
        notice = notices.find_changes(look, ledger.alarms(), now)
        seen = [alarm for _, alarm in (*notice.new, *notice.still)]
        ledger.replace_alarms(notice.stale, seen)  # first, so that a kill changes no `since`
        if not (notice.new or notice.over):
            return ExitCode.OK
        worked = _deliver(session, notice, now)
        if any(worked):
            told = [alarm._replace(told_at=now) for _, alarm in notice.new]
            ledger.replace_alarms(notice.over, told)
    return ExitCode.OK if all(worked) else ExitCode.SERVICE


def send_test_notice(session: Session) -> ExitCode:
    """Send a notice by each channel that is configured; the ledger is not used.

    Its problem is over in the same notice, so that no alarm stays. Raises UsageError if no channel
    is configured.
    """
    require_notify(session, "--test-notice")
    now = datetime.now(UTC)
    alarm = Alarm(_TEST.subject, _TEST.problem, now, now, told_at=now)
    if not all(_deliver(session, Notice(new=[(_TEST, alarm)], over=[alarm]), now)):
        return ExitCode.SERVICE
    session.reporter.note("dkimctl: the test notice was delivered")
    return ExitCode.OK


def _deliver(session: Session, notice: Notice, now: datetime) -> list[bool]:
    """Whether each channel that is configured has worked."""
    config = session.config
    document = notices.notice_document(
        notice, profile=session.profile.name, now=now, complete=session.reporter.complete,
        owner_of=lambda domain: config.rotation.of(domain).owner,
    )  # fmt: skip

    def run_program() -> None:
        withheld = notices.OUR_SECRETS | config.secret_variables()
        notices.run_notice_program(config.notify.command, document, withheld=withheld)

    def post() -> None:
        url = config.notify.webhook
        if is_reference(url):  # the URL is a secret from elsewhere
            with naming(url):
                url = webhook_url(session.secrets.read(url).reveal())
        with session.open_http(url, longest=30.0) as http:
            notices.post_notice(http, url, document)

    worked = []
    channels = {run_program: config.notify.command, post: config.notify.webhook}
    for channel in filter(channels.get, channels):
        try:
            channel()
            worked.append(True)
        except DkimctlError as error:
            message = f"a notice was not delivered: {error.message}"
            session.reporter.warn(message, hint=error.hint, code="notice")
            worked.append(False)
    return worked


@dataclass
class CheckNotices:
    """Takes in checks, then tells what changed; the rest is for a second look."""

    session: Session
    source: Source
    policy: CheckPolicy
    looks: Looks
    retired: Mapping[RegistrationKey, str]
    seen: set[str] = field(default_factory=set)  # subjects
    problems: list[KeyProblem] = field(default_factory=list)

    def add(self, check: Check) -> None:
        self.seen.add(subject_of(check.key))
        if is_good(check.finding.verdict, Verdict.PUBLISHED):
            return
        selection = (check.sign_domain,)
        action = f"look at the record: {next_steps.command('check-dns', selection)}"
        if check.finding.verdict is Verdict.MISSING:
            publish = next_steps.publish(selection, by_target=self.session.has_dns_targets)
            action = f"publish the record: {publish}, then {next_steps.wait_for(selection)}"
        self.problems.append(problem_of(check, action))

    def send(self) -> ExitCode:
        """Tell what is worse or better, after a second look if a problem is new."""
        bad, known = {problem.subject for problem in self.problems}, set[str]()
        to_check: dict[str, Registration] = {}  # not of all subjects, which may be many
        with self.session.open_ledger(for_writing=False) as ledger:
            for registration in ledger.ours():
                subject = subject_of(registration.key)
                known.add(subject)
                if subject in bad:
                    to_check[subject] = registration

        def covers(subject: str) -> bool:
            """Whether it was checked, or is a key that the ledger does not have any more."""
            return subject in self.seen or (is_key_subject(subject) and subject not in known)

        def look_again(subjects: Collection[str]) -> Look:
            self.problems = []
            self.source.forget()
            reporter, wanted = self.session.reporter, self.policy.wanted
            for check in check_publication(
                [to_check[subject] for subject in sorted(subjects) if subject in to_check],
                self.source, self.policy._replace(wait=0.0), looks=self.looks, retired=self.retired,
                progress=CheckProgress(reporter, wanted, may_draw=False),
            ):  # fmt: skip
                self.add(check)
            return Look(self.problems, covers)

        return send_notices(self.session, Look(self.problems, covers), look_again)


def send_run_notices(
    session: Session, selection: Selection, report: Report, run_again: Callable[[], Report]
) -> tuple[ExitCode, Report]:
    """Tell of the problems of a run; `run_again` is a second look, which may put things right.

    Returns also the report of the latest run, with what both have done. Raises LedgerError.
    """
    with session.open_ledger(for_writing=False) as ledger:
        every = list(ledger.ours())
    known, ours = _subjects(every), _subjects(selection.pick(every))

    def covers(subject: str) -> bool:
        """Whether the latest run has looked at it, or nothing in the ledger has it any more."""
        if subject not in known:
            return True
        # Where the service or DNS could not be asked about it, no alarm is over.
        if is_key_subject(subject):
            return subject in ours and Step.PUBLISH not in report.unknown
        # Retired records that wait may still be there.
        left = [task for task in report.tasks if (task.step, task.state) == _WAITING]
        waiting = {_subject(task.registration.sign_domain) for task in left}
        return subject in ours - waiting and not report.unknown

    def look_again(subjects: Collection[str]) -> Look:
        nonlocal report
        report = run_again().after(report)
        problems = [problem for problem in _problems(report) if problem.subject in subjects]
        return Look(problems, covers)

    return send_notices(session, Look(list(_problems(report)), covers), look_again), report


def _problems(report: Report) -> Iterator[KeyProblem]:
    for task in report.tasks:
        domain, check = task.registration.sign_domain, task.check
        action = task.error.hint if task.error else ""
        if task.state is State.DONE:
            continue
        if check is not None and not is_good(check.finding.verdict, Verdict.PUBLISHED):
            look = f"look at the record: {next_steps.command('check-dns', (domain,))}"
            publish = f"publish the record: {next_steps.publish((domain,))}"
            action = action or (publish if task.state is State.BY_HAND else look)
            problem = problem_of(check._replace(urgency=task.urgency), action)
            yield problem._replace(detail=task.reason) if task.state in _PROBLEMS else problem
            continue
        # That a record is to be added is in its check.
        if (task.step, task.state) == (Step.REMOVE, State.BY_HAND):
            retired = next_steps.rotate_retired((domain,))
            action = f"remove the record of {task.registration.selector}: `{retired}`"
        elif task.state not in _PROBLEMS:
            continue
        key, what = task.registration.key, f"{task.step}: {task.state}"
        subject = _subject(key.sign_domain)
        yield KeyProblem(subject, what, task.urgency, task.reason, action, key=key)
    for mail in report.failing:
        subject, what = _subject(mail.sign_domain), f"mail with {mail.selector} fails"
        action = "find out what sends it, and whether it signs with the registered key"
        yield KeyProblem(subject, what, detail=str(mail), action=action)
    for error in report.errors:
        yield KeyProblem("rotate run", error.code, detail=error.message, action=error.hint)


def _subjects(registrations: Iterable[Registration]) -> set[str]:
    keys = [registration.key for registration in registrations]
    return {subject_of(key) for key in keys} | {_subject(key.sign_domain) for key in keys}


def _subject(domain: str) -> str:
    return f"rotation of {domain}"
