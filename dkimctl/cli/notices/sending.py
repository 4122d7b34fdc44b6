"""Send notices by `notify` of the config file, after a second look."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime

from dkimctl.cli.session import Session
from dkimctl.errors import DkimctlError, ExitCode, UsageError, naming
from dkimctl.models.alarm import Alarm
from dkimctl.publication.notices.changes import (
    Notice,
    after_second_look,
    find_changes,
    first_seen_now,
)
from dkimctl.publication.notices.document import notice_document
from dkimctl.publication.notices.problems import Look, Problem
from dkimctl.settings.notices import webhook_url
from dkimctl.text.durations import format_duration
from dkimctl.text.grouping import counted
from dkimctl.text.secret_references import parse_reference

LookAgain = Callable[[Collection[str]], Look]
_Channel = Callable[[Session, bytes], None]

_LONGEST_REQUEST = 30.0  # seconds
_TEST = Problem("dkimctl", "test notice", action="nothing: this is a test")


def require_notify(session: Session, option: str = "--notify") -> None:
    """Raise UsageError unless the config file says how to notify; `option` needs it."""
    if not any(_channels(session)):
        raise UsageError(
            f"{option} needs notify in the config file",
            hint="write `notify: {command: [/path/to/program]}`, or `notify: {webhook: URL}`, into "
            f"{session.config_file}",
        )


def send_notices(
    session: Session,
    look: Look,
    look_again: LookAgain,
    sleep: Callable[[float], None] = time.sleep,
) -> ExitCode:
    """Tell what has become worse or better since the last run, if `notify` is configured.

    `look_again` looks once more at some subjects, before there is an alarm of them. What could
    not be told is a warning, and SERVICE; the next run tells it, unless another channel told it.
    Raises LedgerError.
    """
    if not any(_channels(session)):
        return ExitCode.OK
    look = _confirmed(session, look, look_again, sleep)
    with session.lock_notices(), session.open_ledger(for_writing=True) as ledger:
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


def _confirmed(
    session: Session, look: Look, look_again: LookAgain, sleep: Callable[[float], None]
) -> Look:
    """The look, after a second one at the subjects whose problems are new."""
    with session.open_ledger(for_writing=False) as ledger:
        doubtful = first_seen_now(look, ledger.alarms())
    if not doubtful:
        return look
    seconds = session.config.notify.recheck.total_seconds()
    what, when = counted(len(doubtful), "new problem"), format_duration(seconds)
    session.reporter.note(f"dkimctl: {what}: looking again in {when}, before a notice")
    sleep(seconds)
    return after_second_look(look, look_again(doubtful), doubtful)


def _deliver(session: Session, notice: Notice, now: datetime) -> list[bool]:
    """Which of the channels have worked."""
    complete = session.reporter.complete
    document = notice_document(notice, profile=session.profile.name, now=now, complete=complete)
    return [_has_worked(session, channel, document) for channel in _channels(session)]


def _has_worked(session: Session, channel: _Channel, document: bytes) -> bool:
    try:
        channel(session, document)
    except DkimctlError as error:
        message = f"a notice was not delivered: {error.message}"
        session.reporter.warn(message, hint=error.hint, code="notice")
        return False
    return True


def _channels(session: Session) -> Iterator[_Channel]:
    """The channels that are configured."""
    if session.config.notify.command:
        yield _by_command
    if session.config.notify.webhook:
        yield _by_webhook


def _by_command(session: Session, document: bytes) -> None:
    from dkimctl.publication.notices.program import OUR_SECRETS, run_notice_program

    withheld = OUR_SECRETS | session.config.secret_variables()
    run_notice_program(session.config.notify.command, document, os.environ, withheld=withheld)


def _by_webhook(session: Session, document: bytes) -> None:
    from dkimctl.client.http import HttpClient
    from dkimctl.client.webhook import post_notice

    profile = session.profile
    with HttpClient.over_network(
        timeout=min(profile.timeout, _LONGEST_REQUEST),
        ca_bundle=profile.ca_bundle,
        proxy=profile.proxy,
    ) as http:
        post_notice(http, _webhook(session), document)


def _webhook(session: Session) -> str:
    """The URL, which may be a secret from elsewhere."""
    text = session.config.notify.webhook
    reference = parse_reference(text)
    if reference is None:
        return text
    url = session.secrets.read(reference).reveal()
    with naming(text):
        return webhook_url(url)
