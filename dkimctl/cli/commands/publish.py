"""`dkimctl publish`: put the records into DNS."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import options, publication
from dkimctl.cli.options import App, option, refuse_first
from dkimctl.cli.output import read_format, table_layout, write_chunks
from dkimctl.cli.progress import ProgressDisplay
from dkimctl.cli.report import Reporter
from dkimctl.cli.selected import SelectionArgument
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, NegativeAnswer, worst
from dkimctl.formats.renderer import PublicationFormat
from dkimctl.formats.table import Row, Style, below, table
from dkimctl.models import Registration, named
from dkimctl.names import is_glob
from dkimctl.publishing.targets import ZoneAccess, check_access, where_led
from dkimctl.text import few, printable, readable

_SHOWN = {True: ("yes", Style.GREEN), False: ("no", Style.RED), None: ("unknown", Style.YELLOW)}

app = App()


@app.command(
    "dkimctl publish",
    "dkimctl publish --dry-run '*.example.com'",
    "dkimctl publish --yes --wait 30m",
    "dkimctl publish --dry-run --output plan.md",
    "dkimctl publish --check-access",
)
def publish(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    dry_run: Annotated[bool, option("--dry-run -n",
        "Show what would change; exit code 1 if something would.")] = False,
    yes: options.YesOption = False,
    replace: Annotated[bool, option("--replace", "Also replace TXT records that are not DKIM key "
        "records, and other keys at alias ends.")] = False,
    allow_wildcard_shadowing: options.AllowShadowingOption = False,
    wait: Annotated[str | None, option("--wait TIME",
        "Then check DNS until it has the records, for at most this long, such as 30m.")] = None,
    check_access: Annotated[bool, option("--check-access",
        "Show what can be read and written; nothing is changed.")] = False,
    fmt: Annotated[PublicationFormat | None, option("--format -f FORMAT",
        f"{', '.join(PublicationFormat)} (default: table).")] = None,
    output: options.OutputOption = None,
) -> int:  # fmt: skip
    """Put the registered records into DNS.

    The config file says how, for each zone. The plan is shown first. Nothing is removed:
    `dkimctl rotate run` does that.
    """
    session = open_session(ctx)
    words = selection or ()
    fmt = read_format(PublicationFormat, fmt, output) or PublicationFormat.TABLE
    if check_access:
        refuse_first(
            (any((dry_run, yes, replace, allow_wildcard_shadowing, wait)),
             "--check-access changes nothing, and takes only --format and --output",
             "leave out the other options"),
            (fmt is PublicationFormat.MARKDOWN,
             "--check-access has no Markdown", "write --format table or json"),
        )  # fmt: skip
        return _show_access(session, words, fmt, output)
    chosen = publication.PublishOptions(
        words, fmt, output, dry_run, yes, replace, wait,
        allow_shadowing=allow_wildcard_shadowing,
    )  # fmt: skip
    chosen.require_sound()
    targets = publication.open_dns_targets(session)
    with publication.unchanged_if_interrupted():
        registrations, status = publication.select_to_publish(session, words)
    return worst([status, publication.publish_records(session, registrations, targets, chosen)])


def _show_access(
    session: Session, words: Sequence[str], fmt: PublicationFormat, output: Path | None
) -> ExitCode:
    """Try the zones of the selected records, and show the access to each; if quiet, what is wrong.

    Without a selection, also the zones that the config file names.
    """
    targets = publication.open_dns_targets(session)
    try:
        registrations, status = publication.select_to_publish(session, words)
    except NegativeAnswer as error:  # nothing is registered yet
        if words:
            raise
        if all(is_glob(zone) for target in targets for zone in target.zones):
            hint = "register something, or name a zone in `zones` of `dns` in the config file"
            raise NegativeAnswer(error.message, hint=hint) from None
        registrations, status = [], ExitCode.OK
    reporter = session.reporter
    progress, count = ProgressDisplay(reporter), len(registrations)
    with publication.unchanged_if_interrupted(), progress:
        zones, uncovered = check_access(
            where_led(registrations, session.config.pool_of), targets,
            tries_named=not words, progress=lambda done: progress.show(done, count, "tried"),
        )  # fmt: skip
    return worst([show_access(reporter, zones, uncovered, fmt, output), status])


def show_access(
    reporter: Reporter, zones: Sequence[ZoneAccess], uncovered: Sequence[Registration],
    fmt: PublicationFormat, output: Path | None,
) -> ExitCode:  # fmt: skip
    """Write the access to each zone, as JSON or a table, and warn about what needs attention.

    The exit code is whether all can be read and written, as far as is known.
    """
    codes = [zone.error.exit_code for zone in zones if zone.error is not None]
    is_no = uncovered or any(False in zone.access[:2] for zone in zones if zone.error is None)
    status = worst([*codes, ExitCode.NO if is_no else ExitCode.OK])
    layout, items, rows = table_layout(reporter, output), [], []
    for target, name, names, access, *_ in zones:
        items.append({"target": target, "zone": name, "names": names, **access._asdict()})
        words, styles = zip(*(_SHOWN[answer] for answer in access[:2]), strict=True)
        cells = (target, readable(name, layout.encoding), str(names), *words)
        rows.append(Row(cells, ("", "", "", *styles), below(access.reason, layout)))
    chunks = table(["TARGET", "ZONE", "NAMES", "READ", "WRITE"], rows, layout)
    if fmt is PublicationFormat.JSON:
        chunks = iter([json.dumps({"items": items, "count": len(items)}, indent=2) + "\n"])
    if status or output is not None or not reporter.quiet:
        write_chunks(chunks, output)
    if any(zone.access.writable for zone in zones):
        reporter.note(
            "dkimctl: WRITE was tried at one name of each zone, with an update that changes "
            "nothing; a policy that refuses or drops others shows only when publishing"
        )
    by_hint: dict[str, list[ZoneAccess]] = {}  # those for which there is something to do
    for zone in zones:
        if zone.access.hint:
            by_hint.setdefault(zone.access.hint, []).append(zone)
    for hint, alike in by_hint.items():
        places = few([printable(zone.zone or zone.target) for zone in alike])
        reporter.warn(f"no access to {places}: {alike[0].access.reason}", hint=hint, code="access")
    if uncovered:
        reporter.warn(
            f"in no zone of a DNS target: {len(uncovered)} ({few(list(map(named, uncovered)))})",
            hint="add the zone to `dns` in the config file",
            code="uncovered",
        )
    return status
