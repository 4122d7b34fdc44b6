"""`dkimctl service audit`: who did what, and when."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.embedded_service import open_service_store
from dkimctl.cli.options import App, DataOption, TableOrJson, TableOrJsonOption, examples
from dkimctl.cli.output.service_lists import json_list
from dkimctl.cli.output.streams import write
from dkimctl.errors import UsageError
from dkimctl.text.escaping import printable, quoted
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from dkimctl.service.audit import Event

app = App()


def read_date(text: str) -> datetime:
    """A day, which begins at midnight UTC, or a time with an offset. Raises UsageError."""
    try:
        moment = datetime.fromisoformat(text)
        if len(text) == len("2026-01-31"):
            moment = moment.replace(tzinfo=UTC)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise UsageError(
        f"invalid date {quoted(text)}", hint="write 2026-01-31 (in UTC) or 2026-01-31T12:00+01:00"
    )


@app.command(
    "audit",
    epilog=examples(
        "dkimctl service audit --since 2026-01-31",
        "dkimctl service audit --format json > audit.json",
        "dkimctl service audit --purge-before 2025-01-01",
    ),
)
def audit(
    ctx: typer.Context,
    since: Annotated[
        datetime | None,
        typer.Option(
            "--since",
            metavar="DATE",
            parser=read_date,
            help="Only actions since this day (in UTC) or time.",
        ),
    ] = None,
    purge_before: Annotated[
        datetime | None,
        typer.Option(
            "--purge-before",
            metavar="DATE",
            parser=read_date,
            help="Delete actions before this day (in UTC) or time from the log; print nothing.",
        ),
    ] = None,
    fmt: TableOrJsonOption = TableOrJson.TABLE,
    data: DataOption = None,
) -> None:
    """Show the audit log, one action per line: time, actor, action, object.

    It lists what clients registered, and what operators did with `dkimctl service`, without
    secrets. It grows until you purge it.
    """
    if purge_before is not None and since is not None:
        raise UsageError(
            "--since is for what is shown, and --purge-before shows nothing", hint="leave one out"
        )
    if purge_before is not None and purge_before > datetime.now(UTC):
        raise UsageError("--purge-before is in the future", hint="name a day or time in the past")
    with closing(open_service_store(data)) as store:
        from dkimctl.service.audit import purge_events, read_events

        if purge_before is not None:
            count = purge_events(store, purge_before)
            ctx.obj.note(f"dkimctl: deleted {counted(count, 'action')} from the audit log")
            return
        events = read_events(store, since)
        if fmt is TableOrJson.JSON:
            write(json_list("actions", (event._asdict() for event in events)))
        else:
            write(map(_line, events))


def _line(event: Event) -> str:
    return "\t".join(map(printable, event)) + "\n"
