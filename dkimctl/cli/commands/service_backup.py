"""`dkimctl service backup` and `restore`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli.embedded_service import needs_service_extra, open_service_store
from dkimctl.cli.options import App, DataOption, examples
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.display import ProgressDisplay
from dkimctl.errors import UsageError
from dkimctl.text.grouping import counted

app = App()


def _read_file(text: str) -> Path:
    """Raises UsageError for standard input and output."""
    if text in ("", "-"):
        raise UsageError("a backup must be a file, not standard input or output", hint="name one")
    return Path(text)


@app.command(
    "backup",
    epilog=examples(
        "dkimctl service backup backup-$(date +%F).db",
        "dkimctl service backup backup.db --data service.db",
        "dkimctl service backup backup.db --database postgresql+psycopg://localhost/dkimctl",
    ),
)
def backup(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="New file, which only you can read.")],
    data: DataOption = None,
) -> None:
    """Back up the service's data to a new file, also while the service runs.

    The backup is consistent, and can be restored to a data file or to PostgreSQL, whichever it is
    from. It leaves out tokens, failed logins and keys made ahead. It contains the private keys as
    they are stored: keep it as secret as the data.
    """
    path = _read_file(file)
    with closing(open_service_store(data)) as store:
        from dkimctl.service.backup import back_up

        with _progress(ctx.obj) as progress:
            counts = back_up(store, path, progress)
    ctx.obj.note(f"dkimctl: {path} has {_clients_and_registrations(counts)}")
    if counts["registrations"] and not counts["passphrases"]:
        ctx.obj.note("dkimctl: its private keys are not encrypted: keep it as secret as the data")


@app.command(
    "restore",
    epilog=examples(
        "dkimctl service restore backup.db --data service.db",
        "dkimctl service restore backup.db --database postgresql+psycopg://localhost/dkimctl",
    ),
)
def restore(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File that `backup` wrote.")],
    data: DataOption = None,
) -> None:
    """Restore a backup to a new data file, or to an empty PostgreSQL database.

    Either everything is restored or nothing. Data that has clients is not overwritten. Clients
    need new tokens afterwards.
    """
    path = _read_file(file)
    with needs_service_extra():
        from dkimctl.service import backup
    with (
        backup.opened_backup(path) as source,
        closing(open_service_store(data, may_create=True)) as store,
    ):
        with _progress(ctx.obj) as progress:
            counts = backup.restore(source, store, progress)
        ctx.obj.note(f"dkimctl: restored {_clients_and_registrations(counts)} to {store.name}")


@contextmanager
def _progress(reporter: Reporter) -> Iterator[Callable[[int, int], None]]:
    with ProgressDisplay(reporter, may_draw=True, clock=time.monotonic) as display:

        def show(done: int, total: int) -> None:
            if display.is_due:
                display.draw(done, total, f"{done}/{total} rows")

        yield show


def _clients_and_registrations(counts: Mapping[str, int]) -> str:
    registrations = counted(counts["registrations"], "registration")
    return f"{counted(counts['clients'], 'client')} and {registrations}"
