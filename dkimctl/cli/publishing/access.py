"""`publish --check-access`: what can be read and written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output.access import access_status, report_access, write_access
from dkimctl.cli.output.results import worst
from dkimctl.cli.progress import PublicationProgress
from dkimctl.cli.publishing.run import unchanged_if_interrupted
from dkimctl.cli.publishing.selecting import Selected, select_to_publish
from dkimctl.cli.publishing.targets import open_dns_targets
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, NegativeAnswer
from dkimctl.render.renderer import PublicationFormat

if TYPE_CHECKING:
    from dkimctl.publishing.changes import ConfiguredTarget


def show_access(
    session: Session, words: Sequence[str], fmt: PublicationFormat, output: Path | None
) -> ExitCode:
    """Try the zones of the selected records, and show the access to each; if quiet, what is wrong.

    Without a selection, also the zones that the config file names.
    """
    from dkimctl.publishing.targets import check_access

    targets = open_dns_targets(session)
    selected = _select(session, words, targets)
    progress = PublicationProgress(session.reporter, len(selected.registrations), "tried")
    with unchanged_if_interrupted(), progress:
        report = check_access(
            selected.registrations, targets, tries_named=not words, progress=progress.show
        )
    is_silent = session.reporter.quiet and output is None
    if not (is_silent and access_status(report) is ExitCode.OK):
        write_access(session.reporter, report, fmt, output)
    report_access(session.reporter, report)
    return worst([access_status(report), selected.status])


def _select(
    session: Session, words: Sequence[str], targets: Sequence[ConfiguredTarget]
) -> Selected:
    """What is to be tried; nothing before the first registration, if zones are named."""
    from dkimctl.publishing.targets import names_zones

    try:
        return select_to_publish(session, words)
    except NegativeAnswer as error:
        if words:
            raise
        if not names_zones(targets):
            hint = "register something, or name a zone in `zones` of `dns` in the config file"
            raise NegativeAnswer(error.message, hint=hint) from None
        return Selected([], ExitCode.OK)
