"""Notices of what `check-dns` finds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from dkimctl.cli.notices.sending import require_notify, send_notices
from dkimctl.cli.output import next_steps
from dkimctl.cli.progress.checking import CheckProgress
from dkimctl.cli.session import Session
from dkimctl.dns.looks import Looks
from dkimctl.dns.verdicts import Check, Verdict, is_good
from dkimctl.errors import ExitCode, UsageError
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.publication.notices.problems import (
    Look,
    Problem,
    is_key_subject,
    problem_of,
    subject_of,
)

if TYPE_CHECKING:
    from dkimctl.dns.check import CheckPolicy
    from dkimctl.dns.queries import Source


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
    """Takes in registrations and their checks, and then tells what is worse or better.

    The rest is for a second look: see `check_publication`.
    """

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
        self._problems: list[Problem] = []

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
        else:
            self._problems.append(problem_of(check, self._action(check)))

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

    def _action(self, check: Check) -> str:
        selection = (check.sign_domain,)
        if check.finding.verdict is not Verdict.MISSING:
            return f"look at the record: {next_steps.check(selection)}"
        publish = next_steps.publish(selection, by_target=self._session.has_dns_targets)
        return f"publish the record: {publish}, then {next_steps.wait_for(selection)}"
