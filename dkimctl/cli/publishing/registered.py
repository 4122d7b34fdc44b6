"""`register --publish`: publish what was registered, and see it in DNS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from dkimctl.cli.options.publishing import PublishOptions
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.publication import PublicationView
from dkimctl.cli.output.results import worst
from dkimctl.cli.publishing.run import publish_records
from dkimctl.cli.publishing.selecting import without_left_out
from dkimctl.cli.publishing.targets import open_dns_targets
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, UsageError
from dkimctl.models.registration import Registration, Result
from dkimctl.render.renderer import Format, publishable

if TYPE_CHECKING:
    from dkimctl.publishing.changes import ConfiguredTarget

_WAIT = "2m"


class AfterRegistering:
    """Publishes the records of the results that it has seen. Make one with `read`."""

    def __init__(
        self, session: Session, targets: Sequence[ConfiguredTarget], options: PublishOptions
    ) -> None:
        self._session = session
        self._targets = targets
        self._options = options
        self._registrations: list[Registration] = []

    @classmethod
    def read(cls, session: Session, *, publish: bool, wait: str | None, dry_run: bool) -> Self:
        """What these options ask for; without `publish` it does nothing.

        Raises UsageError, also if there is no DNS target.
        """
        if not publish:
            if wait is not None:
                raise UsageError("--wait has no effect without --publish", hint="add --publish")
            return cls(session, (), PublishOptions())
        if dry_run:
            raise UsageError(
                "--publish has no effect with --dry-run",
                hint="register first; `dkimctl publish --dry-run` shows what would be published",
            )
        options = PublishOptions(yes=True, wait=wait or _WAIT)
        options.require_sound(is_interactive=False)
        return cls(session, open_dns_targets(session), options)

    def __bool__(self) -> bool:
        """Whether it publishes."""
        return bool(self._targets)

    def seeing(self, emit: Callable[[Result], None]) -> Callable[[Result], None]:
        """The same function, for results whose records are to be published."""
        if not self:
            return emit

        def emit_and_keep(result: Result) -> None:
            if publishable(result) is not None:
                self._registrations.append(result.registration)
            emit(result)

        return emit_and_keep

    def publish(self, selection: Sequence[str], output: OutputOptions, status: int) -> int:
        """Publish what was seen; returns the exit code of everything, `status` included.

        `selection` has the words that select the entries in later commands. The plan and the checks
        are shown only if the results were a table on stdout.
        """
        if not self:
            return status
        registrations = without_left_out(self._session, self._registrations)
        view = PublicationView(
            self._session.reporter,
            self._options,
            selection,
            is_shown=output.fmt is Format.TABLE and output.output is None,
        )
        published = publish_records(
            self._session, registrations, self._targets, self._options, view
        )
        return worst([ExitCode(status), published])
