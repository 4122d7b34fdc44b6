"""`dkimctl reports`: what receivers say of signed mail, in DMARC aggregate reports."""

import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from dkimctl.cli.options import App, OutputOption, TableOrJson, TableOrJsonOption, argument
from dkimctl.cli.output import read_format, table_layout, write_chunks
from dkimctl.cli.progress import ProgressDisplay
from dkimctl.cli.report import warn_alike
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, UsageError
from dkimctl.formats.table import Row, table
from dkimctl.input_files import read_bytes
from dkimctl.mail.reports import UnreadFile, read_reports
from dkimctl.models import DmarcReport, RegistrationKey
from dkimctl.text import printable, readable

app = App()
_TOGETHER = 500  # reports that are stored at once
_MAX_PIPED = 64 << 20  # bytes


@app.command(
    "dkimctl reports /var/mail/dmarc/",
    "dkimctl reports 'google.com!example.com!1795000000!1795086399.zip'",
    "dkimctl reports - < report.eml",
)
def reports(
    ctx: typer.Context,
    files: Annotated[list[str], argument("FILE...",
        "Reports, archives or mails with them, mboxes, or directories such as a maildir; - is "
        "standard input.")],
    fmt: TableOrJsonOption = None,
    output: OutputOption = None,
) -> int:  # fmt: skip
    """Read DMARC reports: with which keys mail passed, and failed.

    A report is XML, alone or in gzip, zip, tar or a mail. Each counts once, by its reporter, ID,
    domain and dates. The ledger keeps by key and day how many messages passed and failed, and the
    networks (/24, /48) they came from; domains that are not in it are only counted.

    `rotate run` removes no key with which mail passed in the last five days.
    """
    session = open_session(ctx)
    fmt = read_format(TableOrJson, fmt, output)
    ledger = session.open_ledger(for_writing=False)
    keys = {*ledger.known_keys()} | {closed.key for closed in ledger.closed_keys()}
    domains = {domain for domain, _ in keys}

    def known(key: RegistrationKey) -> RegistrationKey | None:
        if key in keys:
            return key
        return key._replace(selector="") if key.sign_domain in domains else None

    counts, faults, batch = Counter[str](), list[UnreadFile](), list[DmarcReport]()
    passed, failed = Counter[RegistrationKey](), Counter[RegistrationKey]()
    days: dict[RegistrationKey, date] = {}
    reporters: dict[RegistrationKey, set[str]] = defaultdict(set)

    def store() -> None:
        with session.open_ledger(for_writing=True) as ledger:
            new = ledger.note_reports(batch)
        counts["new"] += len(new)
        counts["known before"] += len(batch) - len(new)
        for report in new:
            for key, mail in report.mail.items():
                if not any(mail):
                    continue
                passed[key] += mail.passed_from.total()
                failed[key] += mail.failed_from.total()
                days[key] = max(report.day, days.get(key, report.day))
                reporters[key].add(report.reporter)
        batch.clear()

    with ProgressDisplay(session.reporter) as progress:
        for name, file, is_named in _opened(files, faults):
            for item in read_reports(name, file, known, datetime.now(UTC)):
                if isinstance(item, UnreadFile):
                    if item.is_other and not is_named:
                        counts["other files"] += 1
                    else:
                        faults.append(item)
                    continue
                if item.mail:
                    batch.append(item)
                else:  # which may count later, once the domain is registered
                    counts["about other domains"] += 1
                counts["messages of other domains"] += item.others
                counts["unreadable rows"] += item.wrong
                if len(batch) >= _TOGETHER:
                    store()
                if progress.is_due:
                    done = counts["new"] + counts["known before"]
                    progress.draw(done, None, f"{done:,} reports")
        store()
        with session.open_ledger(for_writing=True) as ledger:
            ledger.forget_mail()
    rows: list[dict[str, Any]] = [
        {"sign_domain": key.sign_domain, "selector": key.selector or None, "passed": passed[key],
         "failed": failed[key], "last_day": str(day), "reporters": len(reporters[key])}
        for key, day in sorted(days.items())
    ]  # fmt: skip
    layout = table_layout(session.reporter, output)
    if fmt is TableOrJson.JSON:
        chunks: Iterable[str] = [json.dumps({"items": rows, "count": len(rows)}, indent=2) + "\n"]
    else:
        cells = ([readable(row["sign_domain"], layout.encoding), row["selector"] or "unknown",
                  f"{row['passed']:,}", f"{row['failed']:,}", row["last_day"],
                  str(row["reporters"])] for row in rows)  # fmt: skip
        titles = ("DOMAIN", "SELECTOR", "PASSED", "FAILED", "LAST DAY", "REPORTERS")
        chunks = table(titles, map(Row, cells), layout, optional=("REPORTERS",))
    write_chunks(chunks, output, is_paged=fmt is not TableOrJson.JSON)
    warn_alike(session.reporter, ((f"{printable(fault.name)}: {fault.reason}", fault.reason,
                                   "no_report") for fault in faults))  # fmt: skip
    text = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    session.reporter.summarize(f"reports: {text or 'none'}", counts)
    return ExitCode.NO if faults else ExitCode.OK


def _opened(
    names: Iterable[str], faults: list[UnreadFile]
) -> Iterator[tuple[str, IO[bytes], bool]]:
    """Each file, and whether it was named itself. Raises UsageError for one that was.

    What cannot be read in a directory is a fault, and does not keep the rest from being read.
    """
    for name in names:
        path = Path(name) if name not in ("-", "") else None
        try:
            if path and path.is_dir():
                yield from _in_directory(path, faults)
            elif path and path.is_file():
                with path.open("rb") as file:
                    yield name, file, True
            else:  # a zip is read from its end
                data = read_bytes(name, largest=_MAX_PIPED, hint_if_large="give the path of a file")
                yield name if path else "<stdin>", io.BytesIO(data), True
        except OSError as error:
            raise UsageError(
                f"cannot read {printable(name)}: {error.strerror}", hint="check the permissions"
            ) from None


def _in_directory(
    directory: Path, faults: list[UnreadFile]
) -> Iterator[tuple[str, IO[bytes], bool]]:
    def note(error: OSError) -> None:
        faults.append(UnreadFile(str(error.filename), f"cannot be read: {error.strerror}"))

    for place, folders, inside in os.walk(directory, onerror=note):
        if "cur" in folders and "tmp" in folders:  # a maildir: mail that is not there yet
            folders.remove("tmp")
        for path in (Path(place, each) for each in sorted(inside)):
            try:
                if path.is_file():  # no pipe, to which perhaps nobody writes
                    with path.open("rb") as file:
                        yield str(path), file, False
            except OSError as error:
                if not isinstance(error, FileNotFoundError):  # moved meanwhile, as from new to cur
                    note(error)
