"""What `verify` shows: the signatures of mails, and how many are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.options import TableOrJson
from dkimctl.cli.output.destination import table_layout, write_chunks
from dkimctl.cli.output.results import worst_check
from dkimctl.errors import ExitCode
from dkimctl.mail.report import MailReport, MailVerdict
from dkimctl.render.checks import open_mails
from dkimctl.render.renderer import render_all

if TYPE_CHECKING:
    from dkimctl.cli.session import Session

_CODES = {
    MailVerdict.PASS: ExitCode.OK,
    MailVerdict.FAIL: ExitCode.NO,
    MailVerdict.UNKNOWN: ExitCode.SERVICE,
}


def show_reports(
    session: Session, reports: Sequence[MailReport], fmt: TableOrJson, output: Path | None
) -> ExitCode:
    """Write the reports to stdout or a file; returns the exit code. Raises OutputError."""
    layout = table_layout(session.reporter, output)
    renderer = open_mails(layout, is_json=fmt is TableOrJson.JSON)
    write_chunks(render_all(renderer, reports), output, is_paged=fmt is TableOrJson.TABLE)
    verdicts = Counter(str(one.verdict) for report in reports for one in report.signatures)
    text = ", ".join(f"{name} {verdicts[name]}" for name in MailVerdict if verdicts[name])
    session.reporter.summarize(text or "no signature", verdicts)
    return worst_check([_CODES[report.verdict] for report in reports])
